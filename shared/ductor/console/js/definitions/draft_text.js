// The text of a draft, its graph and its problems, kept in step. Saves nothing.

import { inexactNumber, inexactWords, parseJson } from "../exact.js";
import { graphOf } from "../graph/scopes.js";
import { graphView } from "../graph/view.js";
import { jsonEditor } from "./editor.js";
import { JsonFault, lineOf, placeOf, readPlaces, stepAt } from "./positions.js";
import { problemList } from "./problems.js";
import { toJson } from "./writing.js";

const DRAW_AFTER_MS = 120;

/**
 * @param {object} document what to begin with
 * @param {{onTyped: function(): void, onGoToText: function(): void}} listeners `onGoToText` before a problem is shown
 * @returns {{editor: HTMLElement, graph: HTMLElement, problems: HTMLElement, text: function(): string, read: function(): object|null,
 *   fault: function(): object|null, show: function(object[]): void, setDocument: function(object): string,
 *   setText: function(string): void, dispose: function(): void}} `read` answers the document, or null while the text is none
 *   that can be sent (`fault` says why); `show` takes what the server found
 */
export function draftText(document, { onTyped, onGoToText }) {
  const state = { places: null, parsed: null, fault: null, found: [], timer: null };
  const editor = jsonEditor({ value: written(document), label: "Definition as JSON", onInput: typed, onCaret: caretMoved });
  const graph = graphView({ nodes: [], edges: [], onSelect: goToStep, label: "Graph of the draft" });
  const problems = problemList({ onGo: goToProblem });

  function typed() {
    clearTimeout(state.timer);
    state.timer = setTimeout(draw, DRAW_AFTER_MS);
    onTyped();
  }

  function read() {
    const text = editor.value();
    try {
      state.places = readPlaces(text);
      state.parsed = parseJson(text);
      state.fault = faultOf(text, state.parsed);
    } catch (error) {
      if (!(error instanceof JsonFault)) throw error;
      state.fault = { code: "JSON_SYNTAX", message: error.message, line: lineOf(text, error.offset), offset: error.offset };
    }
    return state.fault ? null : state.parsed;
  }

  /** A text that is no JSON keeps the graph of before, and what the server found of it has no place now. */
  function draw() {
    const parsed = read();
    const found = state.fault ? [state.fault] : state.found;
    editor.mark(problems.show(found, state.fault ? null : state.places, editor.value()));
    graph.classList.toggle("stale", Boolean(state.fault));
    if (!parsed) return;
    const drawn = graphOf(parsed);
    const counts = countByStep(state.found);
    for (const node of drawn.nodes) Object.assign(node, mark(counts.get(node.id)));
    graph.update(drawn);
  }

  function goToProblem(item) {
    onGoToText();
    if (item.offset !== undefined) return editor.goTo(item.offset, item.offset + 1);
    if (!state.places) return undefined;
    const place = placeOf(state.places, item.field);
    graph.update({ selected: stepAt(state.places, place.start) });
    return editor.goTo(place.start, place.end);
  }

  function goToStep(ref) {
    const place = ref === null || !state.places ? null : placeOf(state.places, ref);
    if (place?.children && place !== state.places) editor.goTo(place.start);
  }

  function caretMoved(offset) {
    if (!state.fault && state.places) graph.update({ selected: stepAt(state.places, offset) });
  }

  function setText(text) {
    editor.setValue(text);
    draw();
  }

  draw();
  return {
    editor,
    graph,
    problems,
    read,
    setText,
    text: () => editor.value(),
    fault: () => state.fault,
    show(found) {
      state.found = found;
      draw();
    },
    setDocument(next) {
      setText(written(next));
      return editor.value();
    },
    dispose: () => clearTimeout(state.timer),
  };
}

const written = (document) => `${toJson(document)}\n`;

/** What keeps a JSON text from being sent. */
function faultOf(text, parsed) {
  if (parsed === null || typeof parsed !== "object" || Array.isArray(parsed)) {
    return { code: "JSON_SYNTAX", message: "A definition is a JSON object.", line: 1, offset: 0 };
  }
  const inexact = inexactNumber(text);
  return inexact && {
    code: "NUMBER_TOO_LARGE",
    message: inexactWords(inexact.number),
    line: lineOf(text, inexact.offset),
    offset: inexact.offset,
  };
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

function mark(count) {
  if (!count) return { tone: undefined, badge: undefined };
  const words = (number, word) => `${number} ${word}${number === 1 ? "" : "s"}`;
  return count.errors ? { tone: "failed", badge: words(count.errors, "error") } : {
    tone: "waiting",
    badge: words(count.warnings, "warning"),
  };
}
