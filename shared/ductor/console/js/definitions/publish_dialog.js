// Publishing a draft: what the new version changes, then the decision.

import { h } from "../dom.js";
import { api } from "../api.js";
import { plural } from "../format.js";
import { dialog } from "../ui/dialog.js";
import { brief, changesInWords } from "./words.js";

const MOST = 40;

/**
 * @param {object} draft as the API answers it
 * @param {{publish: function(): Promise<object>}} session
 * @returns {Promise<object|null>} the answer of the publication, null when it was called off
 */
export async function publishDialog(draft, session) {
  const diff = await difference(draft);
  return dialog({
    title: `Publish version ${draft.version} of ${draft.family_slug}`, action: "Publish", wide: Boolean(diff),
    body: [
      h("p", null,
        "A published version never changes. It takes over the family's schedule and event triggers; runs that are under way stay on the version they began with.",
      ),
      diff && summary(diff),
    ],
    submit: () => session.publish(),
  });
}

/** What it changes; null for a first version. */
async function difference(draft) {
  try {
    return (await api.get(`/api/workflow-definitions/${draft.id}/diff`)).data;
  } catch (error) {
    if (error.code === "DIFF_BASE_MISSING") return null;
    throw error;
  }
}

function values({ kind, before, after }) {
  return kind === "changed" && h("span", { class: "small" },
    " ",
    h("del", null, brief(before, 40)),
    " → ",
    h("ins", null, brief(after, 40)),
  );
}

function summary(diff) {
  const items = changesInWords(diff).flatMap((group) => group.items);
  if (diff.identical) return h("p", { class: "muted" }, `Nothing differs from version ${diff.before.version}.`);
  return h("div", { class: "stack" },
    h("h3", null, `${plural(items.length, "change")} since version ${diff.before.version}`),
    h("ul", { class: "changes plain" },
      items.slice(0, MOST).map((item) => h("li", { dataset: { kind: item.kind } },
        h("span", { class: "mark", "aria-label": item.kind }, { added: "+", removed: "−", changed: "~" }[item.kind]),
        h("span", { class: "break" }, item.words, values(item)),
      )),
    ),
    items.length > MOST && h("p", { class: "small muted" }, `and ${items.length - MOST} more`));
}
