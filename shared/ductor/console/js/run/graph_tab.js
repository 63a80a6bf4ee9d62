// The graph of a run, with states; a step chosen in it shows in the panel.

import { h, put } from "../dom.js";
import { graphView } from "../graph/view.js";
import { emptyState } from "../ui/notice.js";
import { overlay } from "./overlay.js";

/** @param {object} store from `runStore` @param {function(string|null): void} select */
export function graphTab(store, select) {
  const element = h("div", { class: "graph-place card" });
  let view = null;
  let selected = null;

  function show() {
    const { graph, snapshot, items, taken, counts } = store.state;
    if (!snapshot) return;
    if (!graph) {
      put(element, emptyState("The graph cannot be shown", "This key may not read definitions (workflow_definition:read). The other tabs show every step."));
      return;
    }
    const drawn = overlay(graph, snapshot.nodes, items, taken, counts);
    if (view) view.update(drawn);
    else {
      view = graphView({ ...drawn, selected, label: "Graph of the run", onSelect: select });
      put(element, view);
    }
  }
  return {
    element, show,
    mark(id) {
      selected = id?.split("@")[0] ?? null;
      view?.update({ selected });
    },
  };
}
