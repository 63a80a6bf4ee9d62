// Editing a draft: its text and graph side by side, saved when one pauses, published when it is right.

import { h, put } from "../dom.js";
import { ApiError, api } from "../api.js";
import { dateTime } from "../format.js";
import { navigate } from "../router.js";
import { button, menu } from "../ui/buttons.js";
import { emptyState, notice } from "../ui/notice.js";
import { toast, toastError } from "../ui/toast.js";
import { duplicate, removeDraft, warningLines } from "../definitions/actions.js";
import { documentOf, statusOf } from "../definitions/document.js";
import { draftSession, isConflict } from "../definitions/draft_session.js";
import { draftText } from "../definitions/draft_text.js";
import { publishDialog } from "../definitions/publish_dialog.js";
import { forgetText, keepText, keptText } from "../definitions/unsaved.js";

const SAVE_AFTER_MS = 900;
const PANES = [["text", "Text"], ["graph", "Graph"], ["problems", "Problems"]];

export async function render(ctx) {
  const { data: detail } = await api.get(`/api/workflow-definitions/${encodeURIComponent(ctx.params.id)}`, { signal: ctx.signal });
  if (statusOf(detail) !== "draft") {
    return { element: emptyState(
      "This is a published version",
      "Versions never change; the family's draft does.",
      h("a", { class: "button", href: `#/definitions/${detail.id}` }, "To the version"),
    ) };
  }
  ctx.title(`Edit ${detail.title || detail.family_slug}`);
  return draftPage(detail);
}

function draftPage(detail) {
  const panes = paneSwitch();
  const text = draftText(documentOf(detail), { onTyped: typed, onGoToText: () => panes.show("text") });
  const saved = h("span", { class: "save-state", role: "status" });
  const box = h("div", null);
  const occurrences = h("div", { class: "small muted" });
  const saving = savingOf(detail, text, { say, box, onLoaded: () => check(false) });
  let timer = null;

  function say(tone, words) {
    saved.dataset.tone = tone;
    saved.textContent = words;
  }
  function typed() {
    clearTimeout(timer);
    say("waiting", "Typing…");
    timer = setTimeout(saving.save, SAVE_AFTER_MS);
  }
  function save() {
    clearTimeout(timer);
    return saving.save();
  }

  /** What the server finds, on demand and when the page opens. */
  async function check(byHand) {
    if (byHand && !(await save())) return;
    try {
      const { valid, violations, next_occurrences: next } = await saving.session.validate();
      put(occurrences, next.length > 0 && `Next by its schedule: ${next.slice(0, 3).map(dateTime).join(" · ")}`);
      text.show(violations);
      say("done", `Saved, revision ${saving.session.revision()}`);
      if (byHand) toast(
        valid ? "done" : "failed",
        valid ? "Valid: it can be published" : "Not valid yet",
        valid ? null : "Every problem is listed under the text.",
      );
    } catch (error) {
      toastError(error, "It could not be validated");
    }
  }
  async function publish() {
    if (!(await save())) return;
    try {
      const answer = await publishDialog(await saving.session.read(), saving);
      if (!answer) return;
      toast("done", `Version ${answer.published.version} is published`, warningLines(answer.warnings));
      navigate(`/definitions/${answer.published.id}`);
    } catch (error) {
      toastError(error, "It was not published");
    }
  }

  const split = panes.frame(text, occurrences);
  const actions = [
    button("Validate", { onclick: () => check(true) }),
    button("Publish…", { kind: "primary", onclick: publish }),
    moreMenu(detail),
  ];
  const keys = (event) => {
    if (!(event.ctrlKey || event.metaKey) || event.key !== "s") return;
    event.preventDefault();
    save();
  };
  const beforeUnload = (event) => saving.pending() && event.preventDefault();
  addEventListener("beforeunload", beforeUnload);
  offerKept(detail, box, (kept) => {
    text.setText(kept);
    typed();
  });
  check(false);
  return {
    element: h("div", { class: "page draft-page", onkeydown: keys }, head(detail, saved, actions), box, panes.switcher, split),
    dispose() {
      removeEventListener("beforeunload", beforeUnload);
      clearTimeout(timer);
      text.dispose();
      saving.leave();
    },
  };
}

/** Sends the text, and deals with whatever the server says to it. */
function savingOf(detail, text, { say, box, onLoaded }) {
  const session = draftSession(detail);
  let savedText = text.text();
  let running = null;
  let conflict = false;

  async function save() {
    if (running) await running;
    const document = text.read();
    if (!document) {
      say("failed", text.fault().code === "JSON_SYNTAX" ? "Not saved: the text is no JSON yet" : "Not saved");
      return false;
    }
    if (conflict) return false;
    running = send(document, text.text());
    try {
      return await running;
    } finally {
      running = null;
    }
  }
  async function send(document, sent) {
    try {
      say("running", "Saving…");
      const warnings = await session.save(document);
      savedText = sent;
      if (text.text() === sent) say("done", `Saved, revision ${session.revision()}`);
      if (warnings) text.show(warnings);
      return true;
    } catch (error) {
      if (isConflict(error)) await showConflict();
      else {
        say("failed", "Not saved");
        refused(error);
      }
      return false;
    }
  }
  function refused(error) {
    if (!(error instanceof ApiError)) throw error;
    const items = error.errors.length ? error.errors : [{ code: error.error_code, message: error.message }];
    text.show(items.map((item) => ({ ...item, severity: "error" })));
  }
  async function showConflict() {
    const theirs = await session.read().catch(() => null);
    conflict = true;
    say("failed", "Not saved: somebody else changed the draft");
    put(box, notice("waiting", "Somebody else saved this draft while you were editing",
      h("p", null,
        theirs ? `The draft is at revision ${theirs.draft_revision}, saved ${dateTime(theirs.updated_at)}. Yours is based on revision ${session.revision()}. Nothing was overwritten.` : "The draft could not be read: it may have been deleted.",
      ),
      theirs && h("div", { class: "row wrap" },
        button("Load theirs", { onclick: () => settle(theirs, false) }),
        button("Keep mine over theirs", { kind: "danger", onclick: () => settle(theirs, true) }),
      )));
    box.scrollIntoView({ block: "nearest" });
  }
  async function settle(theirs, mine) {
    conflict = false;
    put(box);
    const document = session.adopt(theirs);
    if (mine) return save();
    savedText = text.setDocument(document);
    return onLoaded();
  }

  /** A refused publication shows its faults at their places as well. */
  async function publish() {
    try {
      return await session.publish();
    } catch (error) {
      if (isConflict(error)) showConflict();
      else if (error instanceof ApiError && error.errors.some((item) => item.field)) refused(error);
      throw error;
    }
  }

  /** The last words are saved; what cannot be is kept in this tab. */
  function leave() {
    const left = text.text();
    if (left === savedText) return;
    const document = conflict ? null : text.read();
    if (!document) {
      keepText(detail.id, left);
      toast("waiting", "Your last changes are not saved", "They are kept in this tab: open the draft again to take them back.");
      return;
    }
    Promise.resolve(running).then(() => session.save(document)).catch((error) => {
      keepText(detail.id, left);
      toastError(error, "The last changes of the draft were not saved");
    });
  }
  return { session, save, publish, leave, pending: () => text.text() !== savedText };
}

function offerKept(detail, box, onTake) {
  const kept = keptText(detail.id);
  if (kept === null) return;
  const decide = (take) => {
    forgetText(detail.id);
    put(box);
    if (take) onTake(kept);
  };
  put(box, notice("waiting", "There is text of yours that was not saved",
    h("div", { class: "row wrap" },
      button("Take it back", { onclick: () => decide(true) }),
      button("Forget it", { kind: "quiet", onclick: () => decide(false) }),
    )));
}

/** On a phone one pane shows at a time. */
function paneSwitch() {
  const split = h("div", { class: "draft-split" });
  const switcher = h("div", { class: "switch phone-only", role: "group", "aria-label": "Show" },
    PANES.map(([id, label]) => h("button", { type: "button", dataset: { pane: id }, onclick: () => show(id) }, label)),
  );
  function show(name) {
    split.dataset.pane = name;
    for (const one of switcher.children) one.setAttribute("aria-pressed", String(one.dataset.pane === name));
  }
  show("text");
  return {
    show,
    switcher,
    frame: ({ editor, graph, problems }, occurrences) => put(split,
      h("div", { class: "card pane-text" }, editor), h("div", { class: "card pane-graph" }, graph), h(
        "div",
        { class: "card pane-problems" },
        problems,
        occurrences,
      )),
  };
}

function head(detail, saved, actions) {
  return h("div", { class: "page-head" },
    h("div", { class: "title-block" },
      h("nav", { class: "crumbs", "aria-label": "Where" },
        h("a", { href: "#/definitions" }, "Definitions"),
        " / ",
        h("a", { href: `#/definitions/${detail.id}` }, h("code", null, detail.family_slug)),
        " / Draft",
      ),
      h("div", { class: "row wrap" }, h("h1", { class: "break" }, detail.title || detail.family_slug), saved)),
    h("div", { class: "row wrap" }, actions));
}

function moreMenu(detail) {
  return menu("", [
    { label: "See what it changes", name: "changes", onclick: () => navigate(`/definitions/${detail.id}`, { tab: "changes" }) },
    { label: "Duplicate…", name: "duplicate", onclick: () => duplicate(detail) },
    {
      label: "Delete the draft…",
      name: "delete",
      danger: true,
      onclick: async () => (await removeDraft(detail)) && navigate("/definitions"),
    },
  ], { "aria-label": "More actions" });
}
