// What the areas of the settings share: reading a list page by page, and saying which scope is missing.

import { h, put } from "../dom.js";
import { api } from "../api.js";
import { button } from "../ui/buttons.js";
import { emptyState, errorNotice } from "../ui/notice.js";

/** All pages of a list. */
export async function readAll(path, { query = {}, signal } = {}) {
  const items = [];
  let cursor = null;
  do {
    const page = await api.get(path, { query: { ...query, limit: 200, cursor }, signal });
    items.push(...page.data);
    cursor = page.next_cursor ?? null;
  } while (cursor);
  return items;
}

/** A refused area: which scope is missing, in place of an error. */
export function refusal(error, what) {
  if (error.status !== 403) return errorNotice(error);
  const scope = /scope ([\w:]+)/.exec(error.message)?.[1];
  return emptyState(`Your key may not see ${what}`, scope ? `It lacks the scope ${scope}. Sign in with a key that has it, or ask an administrator for one.` : error.message,
    h("code", { class: "small muted" }, error.code));
}

/**
 * An area: a title, an action, and what `load` gives; a refusal stands in its place.
 * @param {{title: string, words: string, what: string, action?: [string, function(): Promise<*>], load: function(): Promise<Array>, signal: AbortSignal}} spec
 * @returns {{element: HTMLElement, reload: function(): Promise<void>}}
 */
export function area({ title, words, what, action, load }) {
  const body = h("div", { class: "stack" }, h("p", { class: "muted" }, "Reading…"));
  const act = action && button(action[0], {
    kind: "primary", icon: "plus",
    onclick: async () => {
      if (await action[1]()) await reload();
    },
  });
  async function reload() {
    try {
      put(body, await load(reload));
      if (act) act.hidden = false;
    } catch (error) {
      if (error.name === "AbortError") return;
      put(body, refusal(error, what));
      if (act) act.hidden = true;
    }
  }
  // Its form needs what is read first: on a slow network it would open without.
  if (act) act.hidden = true;
  reload();
  return {
    element: h("section", { class: "stack" },
      h("div", { class: "spread" }, h("div", null, h("h2", null, title), h("p", { class: "muted small" }, words)), act),
      body,
    ),
    reload,
  };
}

/** A text of names separated by commas, as a list. */
export const names = (text) => text.split(",").map((part) => part.trim()).filter(Boolean);
