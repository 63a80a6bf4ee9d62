// The history of a run: every transition, attempt and audit entry, in words and as it is stored.

import { h, put } from "../dom.js";
import { api } from "../api.js";
import { clock, dateTime } from "../format.js";
import { readHash, setQuery } from "../router.js";
import { button } from "../ui/buttons.js";
import { jsonView } from "../ui/json.js";
import { errorNotice } from "../ui/notice.js";
import { attemptWords, eventWords } from "./words.js";

const PAGE = 200;
const KINDS = [["", "Everything"], ["transition", "Transitions"], ["attempt", "Attempts"], ["audit", "Audit"]];
const NOISE = new Set(["wake_armed", "node_checked", "slot_checked", "page_looked"]);

/** @param {object} store from `runStore` @param {function(string|null): void} select */
export function historyTab(store, select) {
  const rows = h("ol", { class: "history card" });
  const foot = h("div", { class: "row" });
  const trouble = h("div", null);
  const kinds = h("div", { class: "segments", role: "group", "aria-label": "Kind" }, KINDS.map(([kind, label]) => h("button", { type: "button", dataset: { kind }, onclick: () => setQuery({ kind: kind || null }) }, label)));
  const inner = h("label", { class: "check small" }, h("input", { type: "checkbox", onchange: filter }), "Show the engine's own entries");
  const element = h("div", { class: "stack" }, h("div", { class: "row wrap" }, kinds, inner), trouble, rows, foot);
  let last = null;
  let cursor = null;
  let seen = 0;
  let reading = false;

  function filter() {
    const kind = readHash().query.kind ?? "";
    for (const one of kinds.children) one.setAttribute("aria-pressed", String(one.dataset.kind === kind));
    const all = inner.querySelector("input").checked;
    for (const row of rows.children) row.hidden = (kind && row.dataset.kind !== kind) || (!all && NOISE.has(row.dataset.type));
  }

  async function read(more = false) {
    if (reading) return;
    reading = true;
    try {
      for (let page = 0; page < (more ? 1 : 2); page += 1) {
        const answer = await api.get(`${store.paths.v1}/events`, { query: { limit: PAGE, cursor } });
        put(trouble);
        // The last page is read again when the run has moved: what is known already is passed over.
        const news = answer.data.slice(seen);
        rows.append(...news.map((event) => row(event, select)));
        seen = answer.next_cursor ? 0 : answer.data.length;
        if (answer.next_cursor) cursor = answer.next_cursor;
        put(foot, answer.next_cursor && button("Later entries", { onclick: () => read(true) }));
        if (!answer.next_cursor) break;
      }
    } catch (error) {
      if (error.name !== "AbortError") put(trouble, errorNotice(error));
    } finally {
      reading = false;
      filter();
    }
  }
  return {
    element,
    show() {
      filter();
      const now = store.state.summary?.db_record_version;
      if (now !== undefined && now !== last) {
        last = now;
        read();
      }
    },
    mark() {},
  };
}

function row(event, select) {
  const words = event.kind === "attempt" ? attemptWords(event.data) : eventWords(event);
  const raw = h("details", null, h("summary", null, h("span", { class: "entry" },
    h("span", { class: "faint seq num" }, `#${event.seq}`), h("time", { class: "faint", title: dateTime(event.at) }, clock(event.at)),
    h("span", { class: "grow break" }, event.node && [h("button", { type: "button", class: "node-link mono", onclick: (click) => {
      click.preventDefault();
      select(event.node);
    } }, event.node), " "], words),
    h("span", { class: "chip kind" }, event.kind))));
  // Raw entries are many and mostly stay closed.
  raw.addEventListener("toggle", () => {
    if (raw.open && raw.childElementCount === 1) raw.append(jsonView(event, { open: 2 }));
  });
  return h("li", { dataset: { kind: event.kind, type: event.type } }, raw);
}
