// The runs that one trigger led to: children, compensations, hooks and successors under the run that asked for them.

import { h, put } from "../dom.js";
import { api } from "../api.js";
import { between } from "../format.js";
import { href } from "../router.js";
import { ago } from "../ui/live.js";
import { errorNotice, notice } from "../ui/notice.js";
import { statusBadge } from "../ui/status.js";

/** @param {object} store from `runStore` */
export function treeTab(store) {
  const element = h("div", { class: "stack" }, h("p", { class: "faint" }, "Reading…"));
  let last = null;

  async function read() {
    try {
      const { data } = await api.get(`${store.paths.v1}/tree`);
      const below = Map.groupBy ? Map.groupBy(data.runs, (run) => run.asked_by) : grouped(data.runs);
      const top = data.runs.filter((run) => run.run_id === data.root_run_id || !data.runs.some((other) => other.run_id === run.asked_by));
      const placed = new Set();
      put(element, data.truncated && notice("idle", "", "There are more runs than the 500 shown."),
        data.runs.length === 1 && h("p", { class: "muted" }, "This run has no children, compensations, hooks or successors."),
        h("ul", { class: "tree card" }, top.map((run) => branch(run, below, placed, store.state.runId))));
    } catch (error) {
      if (error.name !== "AbortError") put(element, errorNotice(error));
    }
  }
  return {
    element,
    show() {
      const now = store.state.summary?.db_record_version;
      if (now !== undefined && now !== last) {
        last = now;
        read();
      }
    },
    mark() {},
  };
}

function grouped(runs) {
  const found = new Map();
  for (const run of runs) found.set(run.asked_by, [...(found.get(run.asked_by) ?? []), run]);
  return found;
}

function branch(run, below, placed, here) {
  if (placed.has(run.run_id)) return null;
  placed.add(run.run_id);
  const children = (below.get(run.run_id) ?? []).filter((child) => child.run_id !== run.run_id);
  return h("li", null, h("div", { class: `tree-row ${run.run_id === here ? "here" : ""}` },
    statusBadge(run.status), h("a", { class: "strong cut", href: href(`/runs/${run.run_id}`) }, `${run.workflow_type}@${run.definition_version}`),
    h("span", { class: "chip" }, run.relation), run.node && h("span", { class: "small muted" }, `step ${run.node}`),
    h("code", { class: "faint small" }, `…${run.run_id.slice(-12)}`), h("span", { class: "grow" }), h("span", { class: "small muted" }, ago(run.created_at)), h("span", { class: "small muted num" }, between(run.created_at, run.finished_at)),
    run.run_id === here && h("span", { class: "small faint" }, "this run")),
  children.length > 0 && h("ul", null, children.map((child) => branch(child, below, placed, here))));
}
