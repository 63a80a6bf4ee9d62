// The controls of a whole run: which are possible now and why the others are not, and the dialogs that ask for the rest.

import { h } from "../dom.js";
import { newRequestId } from "../api.js";
import { phrase } from "../format.js";
import { navigate } from "../router.js";
import { button, menu } from "../ui/buttons.js";
import { dialog, field } from "../ui/dialog.js";
import { terminal } from "../ui/status.js";
import { resetDialog } from "./reset.js";
import { send } from "./send.js";

/**
 * Which controls the state allows: null where it does, else the sentence why not.
 * @returns {Object<string, string|null>}
 */
export function allowed(summary) {
  const { status, stalled } = summary;
  const over = terminal(status) ? `The run has ended: it is ${phrase(status)}.` : null;
  const closing = status === "cancelling" ? "The run is being cancelled." : null;
  return {
    pause: over ?? closing ?? (status === "paused" ? "The run is paused already." : null),
    resume: over ?? (status === "paused" ? null : "Only a paused run goes on."),
    cancel: over ?? closing,
    terminate: over,
    redrive: stalled || status === "failed" || status === "timed_out" ? null : "Only a failed, timed out or stalled run is redriven.",
    signal: over,
    continueAsNew: over ?? closing,
    reset: null,
  };
}

const reasonField = () => field({ name: "reason", label: "Reason", hint: "Stands in the audit trail.", placeholder: "optional" });

/** The buttons at the top of a run. @param {object} store from `runStore` */
export function runControls(store) {
  const { summary, runId } = store.state;
  const why = allowed(summary);
  const control = (name) => `${store.paths.v2}:${name}`;
  const plain = (name, label, text, danger = false) => () => {
    const requestId = newRequestId();
    return dialog({
      title: `${label} this run?`, body: [h("p", { class: "muted" }, text)], fields: [reasonField()], action: label, danger,
      submit: (values) => send(store.paths, control(name), { reason: values.reason }, { label, requestId, onApplied: store.now }),
    });
  };
  const pause = plain("pause", "Pause", "Attempts at work finish and are stored; nothing new starts until you resume.");
  const resume = plain("resume", "Resume", "The run goes on where it stopped. Deadlines that passed meanwhile are applied.");
  const cancel = plain("cancel", "Cancel run", "Nothing new starts, waits end, attempts at work are asked to stop and drained; compensations run.", true);
  const redrive = plain("redrive", "Redrive", "The steps that failed or were cancelled run again with a fresh retry budget. Completed steps keep their outputs.");
  const item = (name, label, hint, onclick, danger) => ({ name, label, hint, onclick, danger, why: why[name] });
  const first = why.redrive === null
    ? button("Redrive", { icon: "retry", kind: "primary", onclick: redrive, "data-action": "redrive" })
    : summary.status === "paused" ? button("Resume", { icon: "play", kind: "primary", onclick: resume, "data-action": "resume" })
      : button("Pause", { icon: "pause", onclick: pause, why: why.pause, "data-action": "pause" });
  return h("div", { class: "row run-actions" }, first,
    button("Cancel", { icon: "stop", onclick: cancel, why: why.cancel, "data-action": "cancel" }),
    menu("More", [
      item("pause", "Pause", "Nothing new starts", pause),
      item("resume", "Resume", "Goes on", resume),
      item("redrive", "Redrive", "Failed steps run again", redrive),
      item("signal", "Send a signal…", "For a step that waits for an event", () => signalDialog(store)),
      item("reset", "Reset…", "Fork it at a point of its history", () => resetDialog(store)),
      item("continueAsNew", "Continue as new…", "End it, go on with a fresh history", () => continueDialog(store)),
      item("terminate", "Terminate…", "End it at once, without compensation", () => terminateDialog(store, runId), true),
    ], { "aria-label": "More controls" }));
}

function terminateDialog(store, runId) {
  const word = runId.slice(-6);
  const requestId = newRequestId();
  return dialog({
    title: "Terminate this run?", danger: true, action: "Terminate",
    body: [h("p", { class: "muted" }, "It ends at once. Attempts at work are not waited for, and nothing is compensated. This cannot be undone; cancel ends a run in order.")],
    fields: [field({ name: "confirm", label: `Type ${word}, the end of the run id, to confirm`, required: true, class: "input mono" }), reasonField()],
    ready: (values) => values.confirm === word,
    submit: (values) => send(store.paths, `${store.paths.v2}:terminate`, { reason: values.reason }, { label: "Terminate", requestId, onApplied: store.now }),
  });
}

function signalDialog(store) {
  const awaited = (store.state.definition?.steps ?? []).filter((step) => /WAIT_EVENT$/.test(step.type)).map((step) => step.args?.event_name).filter((name) => typeof name === "string");
  const requestId = newRequestId();
  return dialog({
    title: "Send a signal", action: "Send",
    body: [h("p", { class: "muted" }, "Ends one step of this run that waits for an event of this name, whatever its key. If none waits now, the signal is kept for the next one.")],
    fields: [
      field({ name: "name", label: "Event name", required: true, value: awaited[0] ?? "", list: "awaited" }),
      field({ name: "payload", label: "Payload (JSON)", kind: "json", placeholder: "{}" }),
      reasonField(),
    ],
    submit: (values) => send(store.paths, `${store.paths.v2}:signal`, { name: values.name, payload: values.payload ?? null, reason: values.reason }, { label: "Signal", requestId, onApplied: store.now }),
  });
}

async function continueDialog(store) {
  const requestId = newRequestId();
  let answer = null;
  const done = await dialog({
    title: "Continue as new", action: "Continue as new",
    body: [h("p", { class: "muted" }, "This run ends, and another one goes on with the same version, input and labels, and a fresh history.")],
    fields: [
      field({ name: "seed", label: "Context of the new run (JSON object)", kind: "json", placeholder: "{\"page\": 2}" }),
      field({ name: "discard", label: "Stop live attempts and child runs, and drop kept signals", kind: "checkbox", hint: "Without it, the request is refused while something is at work." }),
      reasonField(),
    ],
    submit: async (values) => {
      const body = { reason: values.reason, discard_pending: values.discard, ...(values.seed !== undefined && { seed_run_context: values.seed }) };
      answer = await send(store.paths, `${store.paths.v2}:continueAsNew`, body, {
        label: "Continue as new", requestId,
        onApplied: (entry) => {
          store.now();
          if (entry && entry.outcome !== "rejected") navigate(`/runs/${answer.new_run_id}`);
        },
      });
      return answer;
    },
  });
  return done;
}
