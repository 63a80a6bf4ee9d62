// Tabs as the ARIA practices describe them: arrows move, one tab stop.

import { h } from "../dom.js";

/**
 * @param {Array<[string, string]>} entries id and label
 * @param {function(string): void} onSelect
 * @returns {HTMLElement & {select: function(string): void}} `select` shows a choice without calling back
 */
export function tabs(entries, selected, onSelect) {
  const buttons = entries.map(([id, label]) => h("button", {
    type: "button", role: "tab", id: `tab-${id}`, "aria-controls": "tab-panel", dataset: { tab: id }, onclick: () => onSelect(id),
  }, label));
  const element = h("div", { class: "tabs", role: "tablist", onkeydown: keys }, buttons);

  function keys(event) {
    const at = buttons.indexOf(document.activeElement);
    const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: buttons.length - 1 }[event.key];
    if (to === undefined || at < 0) return;
    event.preventDefault();
    const next = buttons[(to + buttons.length) % buttons.length];
    next.focus();
    onSelect(next.dataset.tab);
  }
  function select(id) {
    for (const one of buttons) {
      const here = one.dataset.tab === id;
      one.setAttribute("aria-selected", String(here));
      one.tabIndex = here ? 0 : -1;
    }
  }
  select(selected);
  return Object.assign(element, { select });
}
