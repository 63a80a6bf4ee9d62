// The list of what is wrong with a draft; each entry leads to its place in the text.

import { h, put } from "../dom.js";
import { icon } from "../ui/icons.js";
import { plural } from "../format.js";
import { lineOf, placeOf } from "./positions.js";

/**
 * @param {{onGo: function({field: string, code: string, message: string}): void}} options
 * @returns {HTMLElement & {show: function(object[], object|null, string): Map<number, string>}} `show` takes the faults, the
 *   places of the text and the text; it answers the messages per line
 */
export function problemList({ onGo }) {
  const count = h("span", { class: "muted small", role: "status" });
  const list = h("ul", { class: "problems" });
  const element = h("section", { class: "problem-box", "aria-label": "Problems" },
    h("div", { class: "spread problem-head" }, h("h2", null, "Problems"), count),
    list,
  );

  function show(found, places, text) {
    const errors = found.filter((item) => item.severity !== "warning").length;
    const warnings = found.length - errors;
    count.textContent = found.length ? [
      errors && plural(errors, "error"),
      warnings && plural(warnings, "warning"),
    ].filter(Boolean).join(", ") : "None";
    element.dataset.errors = String(errors);
    const lines = new Map();
    put(list, found.map((item) => {
      const line = places && item.field ? lineOf(text, placeOf(places, item.field).start) : item.line;
      if (line) lines.set(line, [lines.get(line), `${item.code}: ${item.message}`].filter(Boolean).join("\n"));
      return entry(item, line, onGo);
    }));
    return lines;
  }
  return Object.assign(element, { show });
}

function entry(item, line, onGo) {
  const warning = item.severity === "warning";
  return h("li", null, h("button", { type: "button", dataset: { tone: warning ? "waiting" : "failed" }, onclick: () => onGo(item) },
    icon(warning ? "info" : "alert"),
    h("span", { class: "grow break" },
      h("span", { class: "sr-only" }, warning ? "Warning: " : "Error: "),
      item.field && h("code", null, item.field),
      item.field && " ",
      item.message,
      h("span", { class: "faint small" }, ` ${item.code}`),
    ),
    line && h("span", { class: "faint small nowrap" }, `line ${line}`)));
}
