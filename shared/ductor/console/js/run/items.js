// The items of a scatter: what one step has become in each, page by page.

import { h, put } from "../dom.js";
import { api } from "../api.js";
import { between } from "../format.js";
import { button } from "../ui/buttons.js";
import { field } from "../ui/dialog.js";
import { errorNotice } from "../ui/notice.js";
import { statusBadge } from "../ui/status.js";

const PAGE = 100;

/** @param {object} store from `runStore` @param {string} step in a scatter @param {function(string): void} select */
export function itemsView(store, step, select) {
  const nested = depth(store.state.graph, step) > 1;
  const list = h("div", { class: "items" });
  const outer = field({ name: "outer", label: "Item of the outer scatter", value: "0", hint: "The index of its item; 3.1 where there are three levels." });
  let cursor = null;

  async function read(fresh) {
    const scope = nested ? `${step}@${outer.value() || "0"}.*` : `${step}@*`;
    try {
      const page = await api.get(`${store.paths.v2}/snapshot`, { query: { scope, limit: PAGE, cursor: fresh ? null : cursor } });
      cursor = page.next_cursor;
      list.querySelector(".more")?.remove();
      const rows = Object.entries(page.nodes).map(([id, node]) => h("button", { type: "button", class: "item", onclick: () => select(id) },
        h("code", { class: "cut" }, id.slice(step.length)), statusBadge(node.status), h("span", { class: "small muted num" }, between(node.started_at, node.finished_at)), h("span", { class: "small muted cut" }, node.error?.code ?? "")));
      if (fresh) put(list, rows.length ? rows : h("p", { class: "muted" }, "No item has come here yet."));
      else list.append(...rows);
      if (cursor) list.append(button("More items", { kind: "quiet more", onclick: () => read(false) }));
    } catch (error) {
      put(list, errorNotice(error));
    }
  }
  outer.control.addEventListener("change", () => read(true));
  read(true);
  return h("div", { class: "stack panel-body" }, h("p", { class: "muted small" }, "This step runs once per item. Choose one to see it."), nested && outer, list);
}

function depth(graph, step) {
  let level = 0;
  for (let group = graph?.groups.find((one) => one.members.includes(step)); group; group = graph.groups.find((one) => one.id === group.parent)) level += 1;
  return level;
}
