// A table whose rows keep their identity: an update changes cells in place and moves nothing that did not move.

import { h, put } from "../dom.js";

/**
 * @param {{columns: Array<{title: string, cell: function(*): (Node|string|Array), class?: string}>, key: function(*): string,
 *   onOpen?: function(*): void, label: string, same?: function(*, *): boolean}} spec
 *   `onOpen` makes rows focusable; Enter or a click opens. `same` says that two values of a row show equally.
 * @returns {HTMLElement & {update: function(Array): void, select: function(string|null): void}}
 */
export function table({ columns, key, onOpen, label, same = () => false }) {
  const body = h("tbody", null);
  const head = h("tr", null, columns.map((column) => h("th", { class: column.class, scope: "col" }, column.title)));
  const element = h("div", { class: "table-box" }, h("table", { class: "table", "aria-label": label }, h("thead", null, head), body));
  const rows = new Map();

  function make(value) {
    const row = h("tr", { dataset: { key: key(value) }, tabindex: onOpen ? 0 : null });
    const entry = { row, value: undefined, cells: columns.map((column) => row.appendChild(h("td", { class: column.class }))) };
    if (onOpen) {
      row.addEventListener("click", (event) => {
        if (!event.target.closest("a,button") && !String(getSelection())) onOpen(entry.value);
      });
      row.addEventListener("keydown", (event) => {
        if (event.key === "Enter" && event.target === row) onOpen(entry.value);
        const step = { ArrowDown: "nextElementSibling", ArrowUp: "previousElementSibling" }[event.key];
        if (step && event.target === row && row[step]) {
          event.preventDefault();
          row[step].focus();
        }
      });
    }
    return entry;
  }

  function update(values) {
    const kept = new Set();
    let at = body.firstElementChild;
    for (const value of values) {
      const id = key(value);
      kept.add(id);
      let entry = rows.get(id);
      if (!entry) rows.set(id, (entry = make(value)));
      if (entry.value === undefined || !same(entry.value, value)) columns.forEach((column, index) => put(entry.cells[index], column.cell(value)));
      entry.value = value;
      if (entry.row === at) at = at.nextElementSibling;
      else body.insertBefore(entry.row, at);
    }
    for (const [id, entry] of rows) {
      if (!kept.has(id)) {
        entry.row.remove();
        rows.delete(id);
      }
    }
  }

  function select(id) {
    for (const [one, { row }] of rows) row.setAttribute("aria-selected", String(one === id));
  }
  return Object.assign(element, { update, select });
}
