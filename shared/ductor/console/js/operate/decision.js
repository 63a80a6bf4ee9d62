// What somebody decides by: what the run was started with, and what it has found out since.

import { h, put } from "../dom.js";
import { api } from "../api.js";
import { brief } from "../definitions/words.js";
import { isLeaf, parseJson } from "../exact.js";
import { elsewhere } from "../ui/elsewhere.js";
import { field } from "../ui/dialog.js";
import { jsonView } from "../ui/json.js";
import { errorNotice } from "../ui/notice.js";

const FACTS = 5;

const pathOf = (runId) => `/api/workflows/runs/${encodeURIComponent(runId)}/input`;

/** The input of a run and, folded, what it knows so far. */
export function decidedBy(runId) {
  const place = h("div", { class: "small muted" }, "Reading…");
  api.get(pathOf(runId)).then(({ data }) => put(place, jsonView(data.input, { open: 3 })), (error) => put(place, unread(error, runId)));
  return h("div", { class: "stack-s decided-by" }, h("h3", null, "The run was started with"), place, soFar(runId));
}

/** What is said with a decision, and how a step reads it. @param {string} ref of the approval */
export const decisionFields = (ref) => [
  field({ name: "comment", label: "Comment", kind: "textarea", maxlength: 4000, hint: "Later steps can read it" }),
  field({ name: "approver_id", label: "Your name (a label)", placeholder: "ada", hint: "The audit trail names the API key." }),
  field({
    name: "payload",
    label: "Payload (JSON)",
    kind: "json",
    rows: 3,
    placeholder: '{"limit": 5}',
    hint: `Any JSON; later steps read it as STEPS.${ref}.output.payload`,
  }),
];

/** The body of a decision: without what was left empty. */
export const decisionOf = (values) =>
  Object.fromEntries(Object.entries(values).filter(([, value]) => value !== "" && value !== undefined && value !== null));

/** One line of an input, read when it comes into sight; unfolded it is all there. `cache` keeps it over redraws. */
export function inputLine(runId, cache) {
  const line = h("span", { class: "cut" }, "…");
  const body = h("div", null);
  const details = h("details", { class: "gate-input" }, h("summary", { class: "small" }, h("span", { class: "muted" }, "Input "), line), body);
  async function read() {
    try {
      if (!cache.has(runId)) cache.set(runId, api.get(pathOf(runId)));
      const { input } = (await cache.get(runId)).data;
      put(line, factsOf(input));
      put(body, jsonView(input, { open: 3 }));
    } catch (error) {
      cache.delete(runId);
      put(line, "cannot be read");
      put(body, unread(error, runId));
    }
  }
  const sight = new IntersectionObserver((seen) => {
    if (!seen.some((one) => one.isIntersecting)) return;
    sight.disconnect();
    read();
  }, { rootMargin: "200px" });
  sight.observe(details);
  return details;
}

/** The first fields of a value on one line: `invoice: i-7 · amount: 1200`. */
export function factsOf(value) {
  if (isLeaf(value) || Array.isArray(value)) return brief(value);
  const fields = Object.entries(value);
  if (!fields.length) return "empty";
  return fields.slice(0, FACTS).map(([name, one]) => `${name}: ${brief(one, 40)}`).join(" · ") + (fields.length > FACTS ? " · …" : "");
}

/** Outputs that the run's steps do not hide, and its context, read when somebody looks. */
function soFar(runId) {
  const body = h("div", { class: "small muted" }, "Reading…");
  const details = h("details", null, h("summary", { class: "small" }, "What the run knows so far"), body);
  details.addEventListener("toggle", async () => {
    try {
      const { nodes, context } = await api.get(`/api/v2/workflow-runs/${encodeURIComponent(runId)}/snapshot`);
      const outputs = Object.entries(nodes).filter(([, node]) => node.latest_output_json).map(([ref, node]) => [
        ref,
        parseJson(node.latest_output_json),
      ]);
      put(body, jsonView({ outputs: Object.fromEntries(outputs), context: context ?? {} }, { open: 3 }));
    } catch (error) {
      put(body, errorNotice(error));
    }
  }, { once: true });
  return details;
}

const unread = (error, runId) => (error.error_code === "ELSEWHERE" ? elsewhere(pathOf(runId)) : errorNotice(error));
