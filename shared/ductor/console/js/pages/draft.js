// Editing a draft: its text, the graph beside it as it is typed, and everything that is wrong, at its place.

import { h, put } from "../dom.js";
import { ApiError, api } from "../api.js";
import { inexactNumber, inexactWords } from "../exact.js";
import { dateTime } from "../format.js";
import { navigate } from "../router.js";
import { button, menu } from "../ui/buttons.js";
import { emptyState, errorNotice, notice } from "../ui/notice.js";
import { toast, toastError } from "../ui/toast.js";
import { graphOf } from "../graph/scopes.js";
import { graphView } from "../graph/view.js";
import { duplicate, removeDraft, warningLines } from "../definitions/actions.js";
import { documentOf, statusOf } from "../definitions/document.js";
import { draftSession, isConflict } from "../definitions/draft_session.js";
import { jsonEditor } from "../definitions/editor.js";
import { JsonFault, lineOf, placeOf, readPlaces, stepAt } from "../definitions/positions.js";
import { problemList } from "../definitions/problems.js";
import { forgetText, keepText, keptText } from "../definitions/unsaved.js";
import { publishDialog } from "../definitions/publish_dialog.js";
import { toJson } from "../definitions/writing.js";

const DRAW_AFTER_MS = 120;
const SAVE_AFTER_MS = 900;
const PANES = [["text", "Text"], ["graph", "Graph"], ["problems", "Problems"]];

export async function render(ctx) {
  const { data: detail } = await api.get(`/api/workflow-definitions/${encodeURIComponent(ctx.params.id)}`, { signal: ctx.signal });
  if (statusOf(detail) !== "draft") {
    return { element: emptyState("This is a published version", "Versions never change; the family's draft does.", h("a", { class: "button", href: `#/definitions/${detail.id}` }, "To the version")) };
  }
  ctx.title(`Edit ${detail.title || detail.family_slug}`);
  return draftPage(detail);
}

function draftPage(detail) {
  const session = draftSession(detail);
  const state = { places: null, parsed: null, found: [], broken: null, conflict: null, drawTimer: null, saveTimer: null, saving: null, savedText: "" };
  const editor = jsonEditor({ value: `${toJson(documentOf(detail))}\n`, label: "Definition as JSON", onInput: typed, onCaret: caretMoved });
  const graph = graphView({ nodes: [], edges: [], onSelect: jumpToStep, label: "Graph of the draft" });
  const problems = problemList({ onGo: jumpToProblem });
  const saved = h("span", { class: "save-state", role: "status" });
  const conflictBox = h("div", null);
  const occurrences = h("div", { class: "small muted" });
  const validate = button("Validate", { onclick: () => check(true) });
  const publish = button("Publish…", { kind: "primary", onclick: publishNow });

  function typed() {
    clearTimeout(state.drawTimer);
    clearTimeout(state.saveTimer);
    say("waiting", "Typing…");
    state.drawTimer = setTimeout(draw, DRAW_AFTER_MS);
    state.saveTimer = setTimeout(save, SAVE_AFTER_MS);
  }

  /** Reads the text; a text that is no JSON keeps the graph of before. */
  function read() {
    const text = editor.value();
    try {
      state.places = readPlaces(text);
      state.parsed = JSON.parse(text);
      state.broken = faultOfText(text, state.parsed);
    } catch (error) {
      if (!(error instanceof JsonFault)) throw error;
      state.broken = { code: "JSON_SYNTAX", message: error.message, line: lineOf(text, error.offset), offset: error.offset };
    }
    return !state.broken;
  }

  function draw() {
    read();
    showProblems();
    if (state.broken) return;
    const parsed = graphOf(state.parsed);
    const faulty = countByStep(state.found);
    for (const node of parsed.nodes) Object.assign(node, faultOf(faulty.get(node.id)));
    graph.update(parsed);
  }

  function showProblems() {
    const found = state.broken ? [state.broken] : state.found;
    editor.mark(problems.show(found, state.broken ? null : state.places, editor.value()));
    graph.classList.toggle("stale", Boolean(state.broken));
  }

  async function save() {
    clearTimeout(state.saveTimer);
    if (state.saving) await state.saving;
    if (!read()) {
      say("failed", state.broken.code === "JSON_SYNTAX" ? "Not saved: the text is no JSON yet" : "Not saved");
      draw();
      return false;
    }
    if (state.conflict) return false;
    state.saving = sendText(state.parsed, editor.value());
    try {
      return await state.saving;
    } finally {
      state.saving = null;
    }
  }

  async function sendText(document, text) {
    try {
      say("running", "Saving…");
      const warnings = await session.save(document);
      if (warnings) state.found = warnings;
      state.savedText = text;
      if (editor.value() === text) say("done", `Saved, revision ${session.revision()}`);
      draw();
      return true;
    } catch (error) {
      refusedSave(error);
      return false;
    }
  }

  function refusedSave(error) {
    if (isConflict(error)) return showConflict();
    say("failed", "Not saved");
    if (!(error instanceof ApiError)) throw error;
    state.found = error.errors.length ? error.errors.map((item) => ({ ...item, severity: "error" })) : [{ code: error.error_code, message: error.message }];
    return draw();
  }

  async function showConflict() {
    const theirs = await session.read().catch(() => null);
    state.conflict = theirs ?? true;
    say("failed", "Not saved: somebody else changed the draft");
    put(conflictBox, notice("waiting", "Somebody else saved this draft while you were editing",
      h("p", null, theirs ? `The draft is at revision ${theirs.draft_revision}, saved ${dateTime(theirs.updated_at)}. Yours is based on revision ${session.revision()}. Nothing was overwritten.` : "The draft could not be read: it may have been deleted."),
      theirs && h("div", { class: "row wrap" }, button("Load theirs", { onclick: () => settle(theirs, false) }), button("Keep mine over theirs", { kind: "danger", onclick: () => settle(theirs, true) }))));
    conflictBox.scrollIntoView({ block: "nearest" });
  }

  async function settle(theirs, mine) {
    state.conflict = null;
    put(conflictBox);
    const document = session.adopt(theirs);
    if (mine) return save();
    editor.setValue(`${toJson(document)}\n`);
    state.savedText = editor.value();
    return check(false);
  }

  /** What the server finds, on demand and when the page opens. */
  async function check(byHand) {
    if (byHand && !(await save())) return;
    try {
      const answer = await session.validate();
      state.found = answer.violations;
      put(occurrences, answer.next_occurrences.length > 0 && `Next by its schedule: ${answer.next_occurrences.slice(0, 3).map(dateTime).join(" · ")}`);
      draw();
      say("done", `Saved, revision ${session.revision()}`);
      if (byHand) toast(answer.valid ? "done" : "failed", answer.valid ? "Valid: it can be published" : "Not valid yet", answer.valid ? null : "Every problem is listed under the text.");
    } catch (error) {
      toastError(error, "It could not be validated");
    }
  }

  async function publishNow() {
    if (!(await save())) return;
    try {
      const answer = await publishDialog(await session.read(), guarded);
      if (!answer) return;
      toast("done", `Version ${answer.published.version} is published`, warningLines(answer.warnings));
      navigate(`/definitions/${answer.published.id}`);
    } catch (error) {
      toastError(error, "It was not published");
    }
  }

  /** A refused publication shows its faults at their places as well. */
  const guarded = {
    async publish() {
      try {
        return await session.publish();
      } catch (error) {
        if (isConflict(error)) showConflict();
        else if (error instanceof ApiError && error.errors.some((item) => item.field)) {
          state.found = error.errors.map((item) => ({ ...item, severity: "error" }));
          draw();
        }
        throw error;
      }
    },
  };

  function jumpToProblem(item) {
    pane("text");
    if (item.offset !== undefined) return editor.goTo(item.offset, item.offset + 1);
    if (!state.places) return undefined;
    const place = placeOf(state.places, item.field);
    const step = stepAt(state.places, place.start);
    graph.update({ selected: step });
    return editor.goTo(place.start, place.end);
  }
  function jumpToStep(ref) {
    const place = ref === null || !state.places ? null : placeOf(state.places, ref);
    if (place && place.children && place !== state.places) editor.goTo(place.start, place.start);
  }
  function caretMoved(offset) {
    if (!state.broken && state.places) graph.update({ selected: stepAt(state.places, offset) });
  }
  function say(tone, words) {
    saved.dataset.tone = tone;
    saved.textContent = words;
  }
  function pane(name) {
    split.dataset.pane = name;
    for (const one of switcher.children) one.setAttribute("aria-pressed", String(one.dataset.pane === name));
  }

  const switcher = h("div", { class: "switch phone-only", role: "group", "aria-label": "Show" }, PANES.map(([id, label]) => h("button", { type: "button", dataset: { pane: id }, onclick: () => pane(id) }, label)));
  const split = h("div", { class: "draft-split" },
    h("div", { class: "card pane-text" }, editor), h("div", { class: "card pane-graph" }, graph), h("div", { class: "card pane-problems" }, problems, occurrences));
  const keys = (event) => {
    if ((event.ctrlKey || event.metaKey) && event.key === "s") {
      event.preventDefault();
      save();
    }
  };
  const beforeUnload = (event) => {
    if (editor.value() !== state.savedText) event.preventDefault();
  };

  /** The last words are saved; what cannot be is kept in this tab. */
  function leave() {
    if (editor.value() === state.savedText) return;
    if (state.conflict || !read()) {
      keepText(detail.id, editor.value());
      toast("waiting", "Your last changes are not saved", "They are kept in this tab: open the draft again to take them back.");
    } else {
      const text = editor.value();
      session.save(state.parsed).catch((error) => {
        keepText(detail.id, text);
        toastError(error, "The last changes of the draft were not saved");
      });
    }
  }
  function takeBack(text) {
    forgetText(detail.id);
    put(conflictBox);
    if (text === null) return;
    editor.setValue(text);
    typed();
  }
  function offerKept() {
    const kept = keptText(detail.id);
    if (kept === null) return;
    put(conflictBox, notice("waiting", "There is text of yours that was not saved", h("div", { class: "row wrap" }, button("Take it back", { onclick: () => takeBack(kept) }), button("Forget it", { kind: "quiet", onclick: () => takeBack(null) }))));
  }
  addEventListener("beforeunload", beforeUnload);
  pane("text");
  state.savedText = editor.value();
  offerKept();
  draw();
  say("done", `Revision ${session.revision()}`);
  check(false);
  return {
    element: h("div", { class: "page draft-page", onkeydown: keys }, head(detail, saved, [validate, publish, moreMenu(detail)]), conflictBox, switcher, split),
    dispose() {
      removeEventListener("beforeunload", beforeUnload);
      clearTimeout(state.drawTimer);
      clearTimeout(state.saveTimer);
      leave();
    },
  };
}

/** What keeps a JSON text from being sent. */
function faultOfText(text, parsed) {
  if (parsed === null || typeof parsed !== "object" || Array.isArray(parsed)) return { code: "JSON_SYNTAX", message: "A definition is a JSON object.", line: 1, offset: 0 };
  const inexact = inexactNumber(text);
  return inexact && { code: "NUMBER_TOO_LARGE", message: inexactWords(inexact.number), line: lineOf(text, inexact.offset), offset: inexact.offset };
}

function head(detail, saved, actions) {
  return h("div", { class: "page-head" },
    h("div", { class: "title-block" },
      h("nav", { class: "crumbs", "aria-label": "Where" }, h("a", { href: "#/definitions" }, "Definitions"), " / ", h("a", { href: `#/definitions/${detail.id}` }, h("code", null, detail.family_slug)), " / Draft"),
      h("div", { class: "row wrap" }, h("h1", { class: "break" }, detail.title || detail.family_slug), saved)),
    h("div", { class: "row wrap" }, actions));
}

function moreMenu(detail) {
  return menu("", [
    { label: "See what it changes", name: "changes", onclick: () => navigate(`/definitions/${detail.id}`, { tab: "changes" }) },
    { label: "Duplicate…", name: "duplicate", onclick: () => duplicate(detail) },
    { label: "Delete the draft…", name: "delete", danger: true, onclick: async () => (await removeDraft(detail)) && navigate("/definitions") },
  ], { "aria-label": "More actions" });
}

function countByStep(found) {
  const counts = new Map();
  for (const item of found) {
    const ref = String(item.field ?? "").split(/[.[]/)[0];
    const count = counts.get(ref) ?? { errors: 0, warnings: 0 };
    count[item.severity === "warning" ? "warnings" : "errors"] += 1;
    counts.set(ref, count);
  }
  return counts;
}

function faultOf(count) {
  if (!count) return { tone: undefined, badge: undefined };
  const words = (number, word) => `${number} ${word}${number === 1 ? "" : "s"}`;
  return count.errors ? { tone: "failed", badge: words(count.errors, "error") } : { tone: "waiting", badge: words(count.warnings, "warning") };
}
