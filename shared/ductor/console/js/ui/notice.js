// What went wrong, in the API's own words: code, field and message. And the empty page.

import { h } from "../dom.js";
import { ApiError } from "../api.js";
import { icon } from "./icons.js";

const ICONS = { failed: "alert", waiting: "alert", done: "check", running: "info", idle: "info", paused: "pause" };

/** A banner. @param {string} tone one of the tones of `styles/tokens.css` */
export function notice(tone, title, ...children) {
  const role = tone === "failed" ? "alert" : "status";
  return h("div", { class: "notice", "data-tone": tone, role }, icon(ICONS[tone] ?? "info"),
    h("div", { class: "grow" }, title && h("div", { class: "title" }, title), children));
}

/** A refusal as a banner. `again` says that the page goes on trying. */
export function errorNotice(error, title, { again = false } = {}) {
  if (!(error instanceof ApiError)) return notice("failed", title ?? "The console itself failed", String(error?.message ?? error));
  const passing = again && (error.status === 0 || error.status === 429 || error.status >= 500);
  return notice("failed", title ?? error.message, title && h("div", null, error.message), faults(error),
    passing && h("div", { class: "small" }, "The page goes on trying by itself."),
    error.trace_id && error.status >= 500 && h("div", { class: "small muted" }, "Trace ", h("code", null, error.trace_id)));
}

/** The faults of a refusal, one line each. */
export function faults(error) {
  const items = error.errors ?? [];
  if (!items.length) return h("div", { class: "small" }, h("code", null, error.error_code ?? ""));
  return h("ul", { class: "faults small" }, items.map((item) => h("li", null,
    h("code", null, item.code), " ", item.field && h("code", null, item.field), item.message !== error.message && [item.field && ": ", item.message])));
}

/** What stands where a list would be. */
export function emptyState(title, words, ...actions) {
  return h("div", { class: "empty" }, icon("empty"), h("h2", null, title), words && h("p", null, words), actions);
}
