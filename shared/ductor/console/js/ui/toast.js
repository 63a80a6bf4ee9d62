// Short news in the corner, read out by screen readers.

import { h } from "../dom.js";
import { ApiError } from "../api.js";
import { iconButton } from "./buttons.js";
import { icon } from "./icons.js";
import { faults } from "./notice.js";

const SHOWN_MS = 6000;
const ICONS = { done: "check", failed: "alert", running: "info", waiting: "clock" };

let box = null;

function shelf() {
  if (!box) {
    // A popover stands above modal dialogs too.
    box = h("div", { class: "toasts", popover: "manual", "aria-live": "polite", role: "status" });
    document.body.append(box);
  }
  if (box.matches(":popover-open")) box.hidePopover();
  box.showPopover();
  return box;
}

/**
 * Shows news. Failures stay until they are closed.
 * @returns {{close: function(): void, update: function(string, string, ...*): void}}
 */
export function toast(tone, title, ...children) {
  const element = h("div", { class: "toast" });
  let timer = null;
  const close = () => {
    clearTimeout(timer);
    element.remove();
    if (box && !box.childElementCount && box.matches(":popover-open")) box.hidePopover();
  };
  const update = (newTone, newTitle, ...more) => {
    clearTimeout(timer);
    element.dataset.tone = newTone;
    element.replaceChildren(icon(ICONS[newTone] ?? "info"), h("div", { class: "grow break" }, h("strong", null, newTitle), more.map((one) => h("div", { class: "muted" }, one))),
      iconButton("cross", "Close", { kind: "quiet tiny", onclick: close }));
    if (newTone === "done" || newTone === "running") timer = setTimeout(close, SHOWN_MS);
  };
  update(tone, title, ...children);
  shelf().append(element);
  return { close, update };
}

/** A refusal as news. */
export function toastError(error, title = "That did not work") {
  if (error?.name === "AbortError") return null;
  return error instanceof ApiError ? toast("failed", title, error.message, faults(error)) : toast("failed", title, String(error?.message ?? error));
}
