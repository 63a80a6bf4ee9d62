// A text editor for JSON: a textarea with line numbers, marks beside faulty lines, and colours where the browser can.

import { h, put } from "../dom.js";

const LINE = 20;
const TOP = 10;
const MAX_COLOURED = 120_000;
const TOKENS = /"(?:[^"\\\n]|\\.)*"(\s*:)?|-?\b\d[\d.eE+-]*\b|\b(?:true|false|null)\b/g;

/**
 * @param {{value: string, label: string, onInput: function(): void, onCaret?: function(number): void, readOnly?: boolean}} spec
 * @returns {HTMLElement & {value: function(): string, setValue: function(string): void, mark: function(Map<number, string>): void,
 *   goTo: function(number, number=): void}} `mark` takes a message per line (from 1); `goTo` selects a range and scrolls to it
 */
export function jsonEditor({ value, label, onInput, onCaret, readOnly = false }) {
  const area = h("textarea", {
    class: "code-area", spellcheck: "false", autocapitalize: "off", autocomplete: "off", wrap: "off", "aria-label": label,
    readonly: readOnly,
  });
  const colours = h("pre", { class: "code-colours", "aria-hidden": "true" });
  const numbers = h("div", { class: "code-numbers", "aria-hidden": "true" });
  const element = h("div", { class: "code" }, h("div", { class: "code-gutter" }, numbers), h("div", { class: "code-body" }, colours, area));
  const paint = painter(colours, area);
  let lines = 0;
  let marks = new Map();

  function refresh() {
    const count = area.value.split("\n").length;
    if (count !== lines) {
      lines = count;
      put(numbers, Array.from({ length: count }, (_, index) => h("div", { class: "code-number" }, index + 1)));
      showMarks();
    }
    paint();
  }
  function showMarks() {
    [...numbers.children].forEach((one, index) => {
      const message = marks.get(index + 1);
      one.classList.toggle("faulty", Boolean(message));
      one.title = message ?? "";
    });
  }
  function scrolled() {
    numbers.style.transform = `translateY(${-area.scrollTop}px)`;
    colours.style.transform = `translate(${-area.scrollLeft}px, ${-area.scrollTop}px)`;
  }
  function setValue(text) {
    area.value = text;
    refresh();
    scrolled();
  }
  area.addEventListener("input", () => {
    refresh();
    onInput?.();
  });
  area.addEventListener("scroll", scrolled);
  area.addEventListener("keydown", (event) => indent(event, area));
  for (const name of ["keyup", "click"]) area.addEventListener(name, () => onCaret?.(area.selectionStart));
  setValue(value);
  return Object.assign(element, {
    area,
    value: () => area.value,
    setValue,
    mark(next) {
      marks = next;
      showMarks();
    },
    goTo(start, end = start) {
      area.focus({ preventScroll: true });
      area.setSelectionRange(start, Math.min(end, area.value.length));
      const before = area.value.slice(0, start);
      const line = before.split("\n").length - 1;
      area.scrollTop = Math.max(0, line * LINE + TOP - area.clientHeight / 3);
      area.scrollLeft = 0;
      scrolled();
    },
  });
}

/** Tab and Enter keep the indentation. Escape, then Tab, leaves the field: the keyboard is never caught. */
function indent(event, area) {
  if (area.readOnly) return;
  if (event.key === "Escape") {
    area.dataset.leaving = "yes";
    return;
  }
  const leaving = area.dataset.leaving === "yes";
  if (event.key !== "Shift") delete area.dataset.leaving;
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const before = area.value.slice(0, area.selectionStart);
  if (event.key === "Tab" && !event.shiftKey && !leaving) insert(event, "  ");
  if (event.key !== "Enter") return;
  const own = /[ \t]*/.exec(before.slice(before.lastIndexOf("\n") + 1))[0];
  insert(event, `\n${own}${/[{[]\s*$/.test(before) ? "  " : ""}`);
}

/** Through the editing command, so that undo knows of it. */
function insert(event, text) {
  event.preventDefault();
  document.execCommand("insertText", false, text);
}

/** Colours by the highlight API: ranges over one text, no element per word. Without it the text is plain. */
function painter(layer, area) {
  const able = typeof CSS !== "undefined" && CSS.highlights && typeof Highlight !== "undefined";
  if (!able) return () => {};
  const text = document.createTextNode("");
  layer.append(text);
  return () => {
    const value = area.value;
    const small = value.length <= MAX_COLOURED;
    area.classList.toggle("coloured", small);
    text.data = small ? `${value}\n` : "";
    const sets = { key: [], string: [], number: [], word: [] };
    if (small) for (const found of value.matchAll(TOKENS)) sets[kindOf(found)].push(rangeOf(text, found));
    for (const [name, ranges] of Object.entries(sets)) CSS.highlights.set(`code-${name}`, new Highlight(...ranges));
  };
}

function kindOf(found) {
  if (found[1] !== undefined) return "key";
  if (found[0][0] === '"') return "string";
  return /[a-z]/.test(found[0][0]) ? "word" : "number";
}

function rangeOf(node, found) {
  const range = new StaticRange({
    startContainer: node, startOffset: found.index,
    endContainer: node, endOffset: found.index + found[0].length - (found[1]?.length ?? 0),
  });
  return range;
}
