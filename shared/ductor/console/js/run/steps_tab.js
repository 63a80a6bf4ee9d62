// Every step of a run as a table.

import { h } from "../dom.js";
import { between, phrase, shortType } from "../format.js";
import { ago, live } from "../ui/live.js";
import { statusBadge } from "../ui/status.js";
import { table } from "../ui/table.js";
import { waitsFor } from "./words.js";

/** @param {object} store from `runStore` @param {function(string|null): void} select */
export function stepsTab(store, select) {
  const list = table({
    label: "Steps", key: (row) => row.id, onOpen: (row) => select(row.id), same: (one, other) => JSON.stringify(one) === JSON.stringify(other),
    columns: [
      { title: "Status", class: "c-status", cell: (row) => statusBadge(row.node.status) },
      { title: "Step", cell: (row) => h("div", { class: "two-lines" }, h("div", { class: "strong cut" }, row.node.title || row.id), h("code", { class: "faint small cut" }, row.id)) },
      { title: "Type", class: "wide-only c-type", cell: (row) => phrase(shortType(row.node.type)) },
      { title: "Attempts", class: "num wide-only c-attempts", cell: (row) => String(row.node.attempt || "–") },
      { title: "Began", class: "wide-only c-began", cell: (row) => ago(row.node.started_at) },
      { title: "Took", class: "num nowrap c-took", cell: (row) => (row.node.started_at ? live(() => between(row.node.started_at, row.node.finished_at)) : "–") },
      { title: "Waits for, or its error", class: "wide-only", cell: (row) => h("div", { class: "clamp break muted" }, row.node.error ? `${row.node.error.code}: ${row.node.error.message}` : waitsFor(row.node.waiting_on, shortType(row.node.type))) },
    ],
  });
  list.classList.add("steps-table");
  return {
    element: list,
    show() {
      if (store.state.snapshot) list.update(Object.entries(store.state.snapshot.nodes).map(([id, node]) => ({ id, node })));
    },
    mark: (id) => list.select(id),
  };
}
