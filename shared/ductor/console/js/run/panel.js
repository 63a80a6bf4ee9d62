// One step of a run beside its graph: state, what it waits for, its values, every attempt, its controls, its items.

import { h, put } from "../dom.js";
import { api } from "../api.js";
import { between, dateTime, duration, instant, phrase, shortType } from "../format.js";
import { href } from "../router.js";
import { button, copyButton, iconButton } from "../ui/buttons.js";
import { elsewhere } from "../ui/elsewhere.js";
import { jsonTextView, jsonView } from "../ui/json.js";
import { ago, live } from "../ui/live.js";
import { errorNotice, notice } from "../ui/notice.js";
import { ended, statusBadge } from "../ui/status.js";
import { nodeControls } from "./node_controls.js";
import { itemsView } from "./items.js";
import { nodeOf, stepOf } from "./store.js";
import { attemptsOf } from "./attempts.js";
import { waitSentence } from "./words.js";

/**
 * @param {object} store from `runStore`
 * @param {function(string|null): void} select chooses another node; null closes
 * @returns {HTMLElement & {show: function(string|null): void, refresh: function(): void}}
 */
export function nodePanel(store, select) {
  const element = h("aside", { class: "step-panel card", "aria-label": "Step", hidden: true, onkeydown: (event) => {
    if (event.key === "Escape" && !event.defaultPrevented) select(null);
  } });
  let id = null;
  let version = "";
  let single = null;

  async function show(next) {
    id = next;
    version = "";
    single = null;
    element.hidden = !id;
    if (id) refresh();
  }

  async function refresh() {
    if (!id || !store.state.snapshot) return;
    const mine = id;
    let node = nodeOf(store.state, id);
    if (!node && id.includes("@")) node = single = await readOne(store, id, single);
    if (mine !== id) return;
    // Heartbeats of what is at work change no node: then the run's version says that something may have happened.
    const moving = node && !ended(node.status) ? store.state.summary.db_record_version : 0;
    const now = JSON.stringify([node, moving, store.state.summary.status, store.state.summary.stalled]);
    if (now === version) return;
    version = now;
    const scroll = element.scrollTop;
    const repeated = !node && store.state.graph?.groups.some((group) => group.members.includes(id));
    put(element, head(id, node, store), repeated ? itemsView(store, id, select) : node ? body(id, node) : h("p", { class: "muted" }, "Nothing is known of this step yet."));
    element.scrollTop = scroll;
  }

  function head(of, node, from) {
    const step = stepOf(from.state, of);
    return h("div", { class: "panel-head" }, h("div", { class: "grow" },
      h("h2", { class: "break" }, node?.title || step?.title || of),
      h("div", { class: "row wrap small muted" }, h("code", { class: "break" }, of), copyButton(of, "Copy the step's name"), h("span", null, phrase(shortType(node?.type ?? step?.type))), step?.action && step.action !== "approval" && h("code", null, step.action))),
    iconButton("cross", "Close the step", { onclick: () => select(null) }));
  }

  function body(of, node) {
    const place = h("div", { class: "stack" }, h("p", { class: "faint small" }, "Reading attempts…"));
    const executed = node.attempt > 0 && shortType(node.type) !== "subworkflow";
    if (executed) attemptsOf(store, of).then((made) => put(place, made), (error) => put(place, errorNotice(error)));
    return h("div", { class: "stack panel-body" },
      h("div", { class: "row wrap" }, statusBadge(node.status), node.attempt > 1 && h("span", { class: "chip" }, `attempt ${node.attempt}`), node.started_at && live(() => between(node.started_at, node.finished_at), { class: "muted" })),
      nodeControls(store, of, node),
      node.waiting_on && h("p", { class: "break" }, live(() => `${waitSentence(node.waiting_on, { type: shortType(node.type) })}.`)),
      node.error && notice("failed", h("code", null, node.error.code), h("div", null, node.error.message), node.error.details !== null && jsonView(node.error.details, { open: 1 })),
      node.no_route && notice("waiting", "No edge fitted", "The step completed, but none of its edges was taken."),
      h("dl", { class: "facts small" }, times(node)),
      node.child_run_id && h("a", { class: "button", href: href(`/runs/${node.child_run_id}`) }, "Open the child run"),
      h("section", { class: "stack" }, h("h3", null, "Output"), output(store, of, node)),
      executed && h("section", { class: "stack" }, h("h3", null, "Attempts"), place),
      definitionOf(of));
  }

  function definitionOf(of) {
    const step = stepOf(store.state, of);
    return step && h("details", null, h("summary", null, "As it is defined"), jsonView(step, { open: 1 }));
  }
  return Object.assign(element, { show, refresh });
}

function times(node) {
  const fact = (name, when) => when && [h("dt", null, name), h("dd", null, ago(when), h("span", { class: "faint" }, ` · ${dateTime(when)}`))];
  return [
    fact("Began", node.started_at), fact("Ended", node.finished_at), fact("Next attempt", node.next_retry_at), fact("Deadline", node.deadline_at),
    node.started_at && node.finished_at && [h("dt", null, "Took"), h("dd", null, duration(instant(node.finished_at) - instant(node.started_at)))],
  ];
}

/** The output inline, or a button that reads a large one. */
export function output(store, id, node) {
  if (node.latest_output_json) return jsonTextView(node.latest_output_json);
  if (!node.output_ref) return h("p", { class: "faint small" }, "None.");
  const place = h("div", { class: "stack" });
  const read = async () => {
    put(place, h("p", { class: "faint small" }, "Reading…"));
    try {
      const answer = await api.get(`${store.paths.v2}/nodes/${encodeURIComponent(id)}/output`);
      put(place, jsonView(answer.output));
    } catch (error) {
      put(place, error.error_code === "ELSEWHERE" ? elsewhere(`/api/v2/workflow-runs/${store.state.runId}/nodes/${id}/output`) : errorNotice(error));
    }
  };
  return put(place, h("p", { class: "muted small" }, "Over 8 KB. Read in full, it is not redacted."), button("Read the output", { onclick: read }));
}

async function readOne(store, id, before) {
  try {
    const page = await api.get(`${store.paths.v2}/snapshot`, { query: { scope: id } });
    return page.nodes[id] ?? before;
  } catch {
    return before;
  }
}
