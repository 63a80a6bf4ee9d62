// What changed between two definitions of a family, in words, with both values where they say more.

import { h, put } from "../dom.js";
import { api, ApiError } from "../api.js";
import { emptyState, errorNotice } from "../ui/notice.js";
import { versionName } from "./document.js";
import { brief, changesInWords } from "./words.js";
import { toJson } from "./writing.js";

const MARKS = { added: "+", removed: "−", changed: "~" };

/**
 * @param {object} definition
 * @param {object[]} others cards of the same family, newest first
 * @param {{against?: string, onAgainst: function(string): void, signal: AbortSignal}} options
 */
export function changesView(definition, others, { against, onAgainst, signal }) {
  const list = h("div", { class: "stack" });
  const older = others.filter((card) => card.id !== definition.id);
  if (!older.length) return emptyState("Nothing to compare with", "This is the only version of its family.");
  const before = older.find((card) => card.version < definition.version && versionName(card) !== "Draft") ?? older[0];
  const chosen = older.some((card) => card.id === against) ? against : before.id;
  const select = h("select", { class: "select", "aria-label": "Compared with", onchange: () => { onAgainst(select.value); load(); } },
    older.map((card) => h("option", { value: card.id, selected: card.id === chosen }, versionName(card))));
  async function load() {
    try {
      const { data } = await api.get(`/api/workflow-definitions/${definition.id}/diff`, { query: { against: select.value }, signal });
      put(list, shown(data));
    } catch (error) {
      if (error.name !== "AbortError") put(
        list,
        error instanceof ApiError && error.code === "DIFF_BASE_MISSING" ? emptyState("Nothing to compare with") : errorNotice(error),
      );
    }
  }
  load();
  return h("div", { class: "stack" },
    h("div", { class: "row" },
      h("span", { class: "muted" }, `What ${versionName(definition)} changes, compared with`),
      h("div", { class: "narrow" }, select),
    ), list);
}

function shown(diff) {
  if (diff.identical) return emptyState("No differences", "Both say the same.");
  return changesInWords(diff).map((group) => h("section", { class: "card" },
    h("h2", { class: "card-title" }, group.title, h("span", { class: "count" }, group.items.length)),
    h("ul", { class: "changes" }, group.items.map((item) => h("li", { dataset: { kind: item.kind } },
      h("span", { class: "mark", title: item.kind, "aria-label": item.kind },
        MARKS[item.kind],
      ), h("div", { class: "grow" }, h("div", { class: "break" }, item.words), values(item)))))));
}

function values({ before, after }) {
  const short = (value) => value === undefined || (typeof value !== "object" || value === null ? String(value).length < 60 : false);
  if (before === undefined && after === undefined) return null;
  if (short(before) && short(after)) {
    return h("div", { class: "small" },
      before !== undefined && h("del", null, brief(before)),
      before !== undefined && after !== undefined && " → ",
      after !== undefined && h("ins", null, brief(after)),
    );
  }
  return h("details", null, h("summary", { class: "small" }, "Show"), h("div", { class: "before-after" },
    before !== undefined && h("pre", { class: "old" }, toJson(before)), after !== undefined && h("pre", { class: "new" }, toJson(after))));
}
