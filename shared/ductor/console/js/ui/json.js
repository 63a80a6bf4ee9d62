// Shows any JSON as a tree that opens and closes. Text stays text.

import { h } from "../dom.js";
import { isLeaf, maybeRounded, parseJson } from "../exact.js";
import { copyButton } from "./buttons.js";

const OPEN_DEPTH = 2;
const PAGE = 200;

/** A viewer for a JSON value, with a button that copies it. */
export function jsonView(value, { open = OPEN_DEPTH } = {}) {
  return h("div", { class: "json-box" }, copyButton(() => JSON.stringify(value, null, 2), "Copy JSON"),
    h("div", { class: "json", tabindex: 0, role: "group", "aria-label": "JSON" }, branch(null, value, open)));
}

/** JSON text as a viewer; text that is no JSON is shown as it is. */
export function jsonTextView(text) {
  try {
    return jsonView(parseJson(text));
  } catch {
    return jsonView(text);
  }
}

function branch(name, value, open) {
  const label = name === null ? null : [h("span", { class: "key" }, name), ": "];
  if (isLeaf(value)) return h("div", { class: "leaf" }, label, leaf(value));
  const entries = Array.isArray(value) ? value.map((one, index) => [String(index), one]) : Object.entries(value);
  const size = Array.isArray(value) ? `[${entries.length}]` : `{${entries.length}}`;
  if (!entries.length) return h("div", { class: "leaf" }, label, h("span", { class: "note" }, Array.isArray(value) ? "[]" : "{}"));
  const inside = h("div", { class: "inside" });
  let shown = 0;
  // Children are made when they are first seen: a large value costs nothing while it is closed.
  const more = () => {
    inside.querySelector(":scope > .more")?.remove();
    for (const [key, one] of entries.slice(shown, shown + PAGE)) inside.append(branch(key, one, open - 1));
    shown += PAGE;
    if (shown < entries.length) {
      inside.append(h("button", { type: "button", class: "button quiet more", onclick: more }, `${entries.length - shown} more`));
    }
  };
  const details = h("details", { open: open > 0 }, h("summary", null, label, h("span", { class: "note" }, size)), inside);
  if (open > 0) more();
  details.addEventListener("toggle", () => {
    if (details.open && !shown) more();
  });
  return details;
}

function leaf(value) {
  if (typeof value === "string") return h("span", { class: "string" }, JSON.stringify(value));
  if (maybeRounded(value)) {
    return h("span", { class: "number", title: "This browser rounds whole numbers beyond 9,007,199,254,740,992." }, String(value), h("span", { class: "note" }, " rounded"));
  }
  if (typeof value === "number" || value instanceof Number) return h("span", { class: "number" }, String(value));
  return h("span", { class: "word" }, String(value));
}
