// The controls of one step: decisions on what waits, and pause, resume, reset, retries and timeout.

import { h } from "../dom.js";
import { newRequestId } from "../api.js";
import { decidedBy, decisionFields, decisionOf } from "../operate/decision.js";
import { phrase, shortType } from "../format.js";
import { button, menu } from "../ui/buttons.js";
import { dialog, field, FieldError } from "../ui/dialog.js";
import { ended, terminal } from "../ui/status.js";
import { send } from "./send.js";

const RESOLVABLE = new Set(["wait", "wait_event", "event_set", "bridge"]);
const RETRIED = new Set(["action", "subworkflow", "ai_action", "ai_agent"]);

/**
 * Which controls a step allows now: null where it does, else the sentence why not.
 * @returns {Object<string, string|null>}
 */
export function allowedOn(run, node) {
  const { status } = node;
  const type = shortType(node.type);
  const over = terminal(run.status) ? "The run has ended." : ended(status) ? `The step has ended: it is ${phrase(status)}.` : null;
  const resettable = ["scheduled", "running", "retrying", "paused"].includes(status) || (status === "waiting" && ["wait", "approval"].includes(type));
  return {
    pause: over ?? (status === "waiting" ? "A step that waits cannot be paused: what it waits for would be lost." : status === "paused" ? "It is paused already." : null),
    resume: over ?? (status === "paused" ? null : "Only a paused step goes on."),
    reset: over ?? (resettable ? null : status === "pending" ? "It has not begun." : "A step that waits for events or for its items cannot begin anew."),
    retry: over ?? (RETRIED.has(type) ? null : `A step of type ${phrase(type)} has no retry policy.`),
    timeout: over,
  };
}

const reasonField = () => field({ name: "reason", label: "Reason", placeholder: "optional", hint: "Stands in the audit trail." });

/** @param {object} store from `runStore` @param {string} id of the node @param {object} node its entry in the snapshot */
export function nodeControls(store, id, node) {
  const why = allowedOn(store.state.summary, node);
  const type = shortType(node.type);
  const waiting = node.status === "waiting" && !terminal(store.state.summary.status);
  const plain = (verb, label, text) => () => {
    const requestId = newRequestId();
    return dialog({
      title: `${label} ${id}?`, body: [h("p", { class: "muted" }, text)], fields: [reasonField()], action: label,
      submit: (values) => send(store.paths, onNode(store, id, verb), { reason: values.reason }, { label: `${label} ${id}`, requestId, onApplied: store.now }),
    });
  };
  return h("div", { class: "row wrap node-actions" },
    waiting && type === "approval" && [
      button("Approve…", { icon: "check", kind: "primary", onclick: () => decide(store, id, "approve"), "data-action": "approve" }),
      button("Reject…", { icon: "cross", kind: "danger", onclick: () => decide(store, id, "reject"), "data-action": "reject" }),
    ],
    waiting && RESOLVABLE.has(type) && button("Resolve…", { icon: "check", onclick: () => resolve(store, id), "data-action": "resolve" }),
    menu("Step", [
      { name: "node-pause", label: "Pause", hint: "Rests before its next attempt", why: why.pause, onclick: plain("pause", "Pause", "The step rests where it would start its next attempt. What it has at work ends and counts.") },
      { name: "node-resume", label: "Resume", why: why.resume, onclick: plain("resume", "Resume", "The step goes on.") },
      { name: "node-reset", label: "Begin anew", hint: "With a fresh retry budget", why: why.reset, onclick: plain("reset", "Reset", "The step begins anew: rendered again, with a fresh retry budget. The attempt of before is asked to stop, and its late result changes nothing. What it did to the outside stays done.") },
      { name: "node-retry", label: "Change retries…", why: why.retry, onclick: () => retries(store, id) },
      { name: "node-timeout", label: "Change timeout…", why: why.timeout, onclick: () => timeout(store, id) },
    ]));
}

const onNode = (store, id, verb) => `${store.paths.v2}/nodes/${encodeURIComponent(id)}:${verb}`;
const onStep = (store, id, verb) => `${store.paths.v2}/steps/${encodeURIComponent(id)}:${verb}`;

function decide(store, id, verb) {
  const requestId = newRequestId();
  const label = verb === "approve" ? "Approve" : "Reject";
  return dialog({
    title: `${label} ${id}`, action: label, danger: verb === "reject", body: [decidedBy(store.state.runId)],
    fields: decisionFields(id.split("@")[0]),
    submit: (values) => send(store.paths, onStep(store, id, verb), decisionOf(values), { label: `${label} ${id}`, requestId, onApplied: store.now }),
  });
}

function resolve(store, id) {
  const requestId = newRequestId();
  return dialog({
    title: `Resolve ${id}`, action: "Resolve", body: [h("p", { class: "muted" }, "Ends the wait by hand.")],
    fields: [
      field({ name: "outcome", label: "The step ends", kind: "select", options: [["success", "as completed, with this output"], ["error", "as failed, with this error"]] }),
      field({ name: "payload", label: "Output (JSON)", kind: "json", placeholder: "{\"paid\": true}" }),
      field({ name: "code", label: "Error code", placeholder: "only for a failure: RESOLVED_AS_ERROR" }),
      field({ name: "message", label: "Error message", placeholder: "only for a failure" }),
      reasonField(),
    ],
    submit: (values) => {
      const error = values.outcome === "error" && (values.code || values.message) ? { ...(values.code && { code: values.code }), ...(values.message && { message: values.message }) } : null;
      const body = { outcome: values.outcome, reason: values.reason, ...(values.payload !== undefined && { payload: values.payload }), ...(error && { error }) };
      return send(store.paths, onStep(store, id, "resolve"), body, { label: `Resolve ${id}`, requestId, onApplied: store.now });
    },
  });
}

function retries(store, id) {
  const requestId = newRequestId();
  const number = (name, label, hint) => field({ name, label, kind: "number", hint, step: "any", min: 0 });
  return dialog({
    title: `Retries of ${id}`, action: "Change retries", body: [h("p", { class: "muted" }, "Empty fields stay as they are. It counts from the next failure on.")],
    fields: [
      number("retry_max_attempts", "Attempts", "1 to 100"), number("retry_backoff_ms", "First pause (ms)"), number("retry_backoff_multiplier", "Multiplier", "1 to 10"),
      number("retry_max_backoff_ms", "Longest pause (ms)"), number("retry_jitter", "Jitter", "0 to 1"), reasonField(),
    ],
    submit: ({ reason, ...changes }) => {
      const sent = Object.fromEntries(Object.entries(changes).filter(([, value]) => value !== undefined));
      if (!Object.keys(sent).length) throw new FieldError("Fill in what is to change.");
      return send(store.paths, onNode(store, id, "updateRetryPolicy"), { reason, ...sent }, { label: "New retries", requestId, onApplied: store.now });
    },
  });
}

function timeout(store, id) {
  const requestId = newRequestId();
  return dialog({
    title: `Timeout of ${id}`, action: "Change timeout",
    fields: [field({ name: "timeout_ms", label: "Timeout (ms)", kind: "number", required: true, min: 0, hint: "0 is without limit. Attempts that begin from here on have it; what waits gets a new deadline, counted from its beginning." }), reasonField()],
    submit: (values) => send(store.paths, onNode(store, id, "updateTimeout"), { timeout_ms: values.timeout_ms, reason: values.reason }, { label: "New timeout", requestId, onApplied: store.now }),
  });
}
