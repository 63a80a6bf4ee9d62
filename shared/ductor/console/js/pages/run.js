// One run: its head, tabs that each show another side of it, and a panel for the step that is chosen.

import { h, put } from "../dom.js";
import { readHash, setQuery } from "../router.js";
import { graphTab } from "../run/graph_tab.js";
import { runHeader } from "../run/header.js";
import { historyTab } from "../run/history_tab.js";
import { nodePanel } from "../run/panel.js";
import { stepsTab } from "../run/steps_tab.js";
import { runStore } from "../run/store.js";
import { timelineTab } from "../run/timeline_tab.js";
import { treeTab } from "../run/tree_tab.js";
import { valuesTab } from "../run/values_tab.js";
import { tabs } from "../ui/tabs.js";

const TABS = { graph: graphTab, timeline: timelineTab, steps: stepsTab, history: historyTab, values: valuesTab, tree: treeTab };
const LABELS = [["graph", "Graph"], ["timeline", "Timeline"], ["steps", "Steps"], ["history", "History"], ["values", "Input & output"], ["tree", "Tree"]];

/** @param {{params: {run: string}, query: Object, signal: AbortSignal, title: function(string): void}} ctx */
export function render(ctx) {
  const store = runStore(ctx.params.run, ctx.signal);
  const select = (id) => setQuery({ node: id });
  const header = runHeader(store);
  const panel = nodePanel(store, select);
  const place = h("div", { class: "tab-place", id: "tab-panel", role: "tabpanel" });
  const split = h("div", { class: "split" }, place, panel);
  const made = new Map();
  const bar = tabs(LABELS, "graph", (id) => setQuery({ tab: id === "graph" ? null : id, kind: null }));
  const element = h("div", { class: "page run-page" }, header, bar, split);
  let open = null;
  let node;

  function show(query) {
    const id = query.tab in TABS ? query.tab : "graph";
    bar.select(id);
    if (!made.has(id)) made.set(id, TABS[id](store, select));
    if (open !== id) {
      open = id;
      put(place, made.get(id).element);
      place.setAttribute("aria-labelledby", `tab-${id}`);
      split.dataset.tab = id;
    }
    made.get(id).show(store.state);
    if (node !== (query.node ?? null)) {
      node = query.node ?? null;
      panel.show(node);
      split.classList.toggle("with-panel", Boolean(node));
    }
    made.get(id).mark(node);
  }

  store.listen((state) => {
    header.show(state);
    bar.hidden = split.hidden = !state.summary;
    if (!state.summary) return;
    const { summary } = state;
    ctx.title(`${summary.subject_id || summary.workflow_type} · ${summary.status}`);
    made.get(open)?.show(state);
    panel.refresh();
  });
  // The graph takes what the window has left under the head, which is as high as its words.
  const heights = new ResizeObserver(() => split.style.setProperty("--above", `${Math.round(split.getBoundingClientRect().top + scrollY)}px`));
  heights.observe(header);
  show(ctx.query);
  return {
    element,
    dispose() {
      heights.disconnect();
      store.stop();
    },
    update: () => show(readHash().query),
  };
}
