// What a run does and what has happened to it, in plain words. Pure: takes the API's answers, gives text.

import { duration, instant, phrase, relative } from "../format.js";

/** The step and the rest of a `waiting_on.detail`. */
export function waitDetail(waiting) {
  const retry = /^attempt (\d+) of step (\S+) after (.*)$/s.exec(waiting?.detail ?? "");
  if (retry) return { step: retry[2], rest: `attempt ${retry[1]}, after ${retry[3]}` };
  const paused = /^step (\S+) is (paused by an operator)$/.exec(waiting?.detail ?? "");
  if (paused) return { step: paused[1], rest: paused[2] };
  const found = /^step ([^:]+)(?:: (.*))?$/s.exec(waiting?.detail ?? "");
  return found ? { step: found[1], rest: found[2] ?? "" } : { step: "", rest: waiting?.detail ?? "" };
}

const WAITS = {
  timer: () => "a timer",
  retry: (rest) => rest || "its next attempt",
  approval: (rest) => rest || "a decision",
  event: (rest) => rest || "an event",
  event_set: (rest) => rest || "a set of events",
  digest: (rest) => rest || "a digest",
  child: () => "its child run or its items",
  operator: () => "somebody to resume it",
  concurrency: (rest) => rest || "a free slot",
  bridge: (rest) => rest || "a worker outside",
};

/** What is waited for, short: `a decision by role operator`. */
export function waitsFor(waiting, type = "") {
  if (!waiting) return "";
  if (waiting.kind === "child" && type) return type === "scatter" ? "its items" : "its child run";
  const { rest } = waitDetail(waiting);
  return (WAITS[waiting.kind] ?? (() => rest || phrase(waiting.kind)))(rest);
}

/** A sentence about what a run waits for, with the step and the deadline. */
export function waitSentence(waiting, { now = Date.now(), type = "" } = {}) {
  if (!waiting) return "";
  const { step } = waitDetail(waiting);
  const end = instant(waiting.deadline_at);
  const until = end === null ? "" : end > now ? `, until ${relative(waiting.deadline_at, now).replace(/^in /, "in ")} at the latest` : ", and the deadline has passed";
  const where = step ? `Step ${step} waits for ` : "The run waits for ";
  if (waiting.kind === "timer" && end !== null) return `${step ? `Step ${step}` : "The run"} goes on ${end > now ? relative(waiting.deadline_at, now) : "now"}`;
  if (waiting.kind === "retry" && end !== null) return `Step ${step} tries again ${end > now ? relative(waiting.deadline_at, now) : "now"}: ${waitDetail(waiting).rest}`;
  if (waiting.kind === "operator") return step ? `Step ${step} is paused until somebody resumes it` : "The run is paused until somebody resumes it";
  return `${where}${waitsFor(waiting, type)}${until.replace(", until in ", ", at most another ").replace(" at the latest", "")}`;
}

/** One entry of the history as a sentence without its step. */
export function eventWords(event) {
  const data = event.data ?? {};
  const say = EVENTS[event.type];
  if (say) return say(data, event);
  return phrase(event.type);
}

const failure = (error) => (error ? `${error.code}: ${error.message}` : "no error was told");
const to = (when) => (when ? `until ${new Date(when).toLocaleString("en-GB")}` : "without a deadline");
const attempt = (data) => `attempt ${data.attempt ?? 1}`;

const EVENTS = {
  run_started: () => "The run began",
  run_forked: (data) => `Forked from run ${data.source} after its transition ${data.seq}; ${(data.kept ?? []).length} results kept`,
  run_paused: () => "The run was paused: nothing new starts",
  run_resumed: () => "The run goes on",
  run_redriven: () => "Redriven: what failed or was cancelled runs again",
  run_ending: (data) => `The run is about to end as ${phrase(data.status)}${data.reason ? `: ${data.reason}` : ""}`,
  run_ended: (data) => `The run ended as ${phrase(data.status)}${data.error ? `, ${failure(data.error)}` : data.reason ? `: ${data.reason}` : ""}`,
  node_scheduled: (data) => `${attempt(data)} was handed out`,
  node_parked: (data) => `began to wait ${to(data.deadline)}`,
  node_retrying: (data) => `${attempt(data)} failed with ${failure(data.error)}; the next one ${data.retry_at ? `at ${new Date(data.retry_at).toLocaleTimeString("en-GB")}` : "follows"}`,
  node_completed: (data) => (data.error ? `failed with ${failure(data.error)}, and the run goes on` : `completed${data.no_route ? "; no edge was taken" : ""}`),
  node_failed: (data) => `${phrase(data.status)}: ${failure(data.error)}${data.handled ? "; an edge took it" : ""}`,
  node_skipped: () => "was skipped",
  node_cancelled: (data) => `was cancelled${data.live ? "; its attempt was asked to stop" : ""}`,
  node_checked: () => "somebody looks whether it still lives",
  node_watched: (data) => (data.worker ? `worker ${data.worker} has taken it` : "waits for a worker outside"),
  node_overdue: () => "is overdue: the attempt is looked at",
  attempt_abandoned: (data) => `${attempt(data)} was given up; who has it is asked to stop`,
  node_held: () => "was paused by an operator",
  node_rested: () => "rests: it is paused",
  node_adopted: () => "takes the result that the source run had",
  node_released: () => "was resumed by an operator",
  node_reset: () => "begins anew",
  node_tuned: (data) => `has ${data.retry ? "another retry policy" : `another timeout${data.timeout_ms ? `: ${duration(data.timeout_ms)}` : ""}`} from its next attempt on`,
  scatter_opened: (data) => `opened ${data.count} items${data.window ? `, ${data.window} at a time` : ""}`,
  scatter_reopened: () => "goes through its items again",
  page_opened: (data) => `items ${data.first} to ${data.first + data.count - 1} have scopes`,
  items_started: (data) => `items ${data.first} to ${data.until - 1} began`,
  item_ended: (data) => `item ${data.index} ${data.error ? `failed with ${failure(data.error)}` : "ended"}`,
  page_closed: (data) => `closed the items of page ${data.page}`,
  gather_collected: (data) => `collected up to page ${data.cursor}`,
  event_consumed: () => "An event was taken",
  signal_kept: (data) => `Signal ${data.name} is kept for a step that waits for it`,
  signal_taken: () => "A step took a kept signal",
  checkpoint_reached: (data) => `Checkpoint ${data.name} was reached`,
  slot_asked: (data) => `The run asks for a slot of ${data.key}`,
  slot_granted: () => "The run has its slot",
  slot_left: () => "The run waits for its slot no more",
  wake_armed: (data) => (data.at ? `Wakes up at ${new Date(data.at).toLocaleTimeString("en-GB")}` : "Its wake-up has fired"),
  operator_audited: (data) => `${phrase(data.operation)} was ${data.outcome}${data.message ? `: ${data.message}` : ""}${data.reason ? ` (“${data.reason}”)` : ""}`,
  child_ended: () => "A child run has ended",
  linked_planned: (data) => `A ${data.kind} run follows`,
  successor_planned: () => "Another run goes on",
  late_effect: () => "A result came after the run had ended",
};

/** What one execution by a worker came to. */
export function attemptWords(data) {
  const took = data.started_at && data.finished_at ? ` after ${duration(instant(data.finished_at) - instant(data.started_at))}` : "";
  const by = data.worker ? ` on ${data.worker}` : "";
  if (data.error) return `${attempt(data)} of ${data.action} ${phrase(data.status)}${took}: ${failure(data.error)}`;
  return `${attempt(data)} of ${data.action} ${phrase(data.status)}${took}${by}`;
}
