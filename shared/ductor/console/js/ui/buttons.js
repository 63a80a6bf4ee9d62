// Buttons and small things to press.

import { h, put } from "../dom.js";
import { icon } from "./icons.js";

/**
 * A button. `why` disables it, stays readable for everybody, and says the reason.
 * @param {{icon?: string, kind?: string, onclick?: function(Event): void, why?: string, type?: string, title?: string}} options
 */
export function button(label, options = {}) {
  const { icon: name, kind = "", onclick, why, type = "button", title, ...rest } = options;
  return h(
    "button",
    {
      type, class: `button ${kind}`, title: why || title, "aria-disabled": why ? "true" : null, ...rest,
      onclick: (event) => {
        if (event.currentTarget.getAttribute("aria-disabled") === "true") event.preventDefault();
        else onclick?.(event);
      },
    },
    name && icon(name), label,
  );
}

/** A button that shows only an icon; `label` is its name. */
export function iconButton(name, label, options = {}) {
  const { kind = "quiet", ...rest } = options;
  return h("button", { type: "button", class: `button icon-only ${kind}`, "aria-label": label, title: label, ...rest }, icon(name));
}

/** Copies `value` (a string, or a function that gives one). */
export function copyButton(value, label = "Copy") {
  const made = iconButton("copy", label, {
    kind: "quiet tiny",
    onclick: async (event) => {
      event.stopPropagation();
      event.preventDefault();
      const done = await copy(typeof value === "function" ? value() : value);
      put(made, icon(done ? "check" : "cross"));
      setTimeout(() => put(made, icon("copy")), 1200);
    },
  });
  return made;
}

async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return copyFromField(text);
  }
}

/** The old way, for pages over plain HTTP from another machine: those have no clipboard of their own. */
function copyFromField(text) {
  const field = h("textarea", { class: "sr-only", "aria-hidden": "true", tabindex: -1 });
  const before = document.activeElement;
  field.value = text;
  (before?.closest("dialog") ?? document.body).append(field);
  field.select();
  const done = document.execCommand("copy");
  field.remove();
  before?.focus();
  return done;
}

/**
 * A menu of actions behind a button: arrow keys move, Escape closes.
 * @param {Array<{label: string, onclick: function(): void, why?: string, danger?: boolean, hint?: string}|null>} items
 */
export function menu(label, items, options = {}) {
  const list = h("div", { class: "menu-list", role: "menu", hidden: true });
  const opener = button(label, {
    icon: "more", "aria-haspopup": "menu", "aria-expanded": "false", ...options, onclick: () => toggle(list.hidden),
  });
  const box = h("div", { class: "menu" }, opener, list);
  const entries = items.filter(Boolean).map((item) => h(
    "button",
    {
      type: "button", role: "menuitem", class: item.danger && !item.why ? "danger" : null, tabindex: -1,
      "aria-disabled": item.why ? "true" : null, "data-action": item.name,
      onclick: () => {
        if (item.why) return;
        toggle(false);
        item.onclick();
      },
    },
    h("span", null, item.label), (item.why || item.hint) && h("span", { class: "hint" }, item.why || item.hint),
  ));
  list.append(...entries);

  function toggle(open) {
    list.hidden = !open;
    opener.setAttribute("aria-expanded", String(open));
    if (open) (entries.find((entry) => entry.getAttribute("aria-disabled") !== "true") ?? entries[0])?.focus();
  }
  box.addEventListener("focusout", (event) => {
    if (!box.contains(event.relatedTarget)) toggle(false);
  });
  box.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (event.key === "Escape" && !list.hidden) {
      event.stopPropagation();
      toggle(false);
      opener.focus();
    } else if (step && !list.hidden) {
      event.preventDefault();
      const at = entries.indexOf(document.activeElement);
      entries[(at + step + entries.length) % entries.length].focus();
    }
  });
  return box;
}
