// How the states of runs, nodes and attempts look: an icon, a word and a tone, never a colour alone.

import { h } from "../dom.js";
import { words } from "../format.js";
import { icon } from "./icons.js";

const LOOKS = {
  pending: ["idle", "dot"],
  scheduled: ["idle", "clock"],
  running: ["running", "spin"],
  waiting: ["waiting", "clock"],
  retrying: ["waiting", "retry"],
  paused: ["paused", "pause"],
  cancelling: ["waiting", "stop"],
  completed: ["done", "check"],
  succeeded: ["done", "check"],
  failed: ["failed", "cross"],
  timed_out: ["failed", "alert"],
  stalled: ["failed", "alert"],
  cancelled: ["idle", "stop"],
  terminated: ["failed", "stop"],
  continued_as_new: ["idle", "forward"],
  merged: ["idle", "merge"],
  skipped: ["idle", "dash"],
  draft: ["waiting", "dot"],
  published: ["done", "check"],
  archived: ["idle", "dash"],
};

const TERMINAL = new Set(["completed", "failed", "timed_out", "cancelled", "terminated", "continued_as_new", "merged"]);
const ENDED = new Set(["completed", "failed", "timed_out", "skipped", "cancelled"]);

/** All states of a run, in the order of its life. */
export const RUN_STATUSES = [
  "pending", "running", "waiting", "paused", "cancelling",
  "completed", "failed", "timed_out", "cancelled", "terminated", "continued_as_new", "merged",
];

/** The tone (`data-tone`) of a state. */
export function tone(status) {
  return (LOOKS[status] ?? LOOKS.pending)[0];
}

/** The name of the icon of a state. */
export function statusIcon(status) {
  return (LOOKS[status] ?? LOOKS.pending)[1];
}

/** Whether a run in this state changes no more. */
export function terminal(status) {
  return TERMINAL.has(status);
}

/** Whether a node in this state changes no more by itself. */
export function ended(status) {
  return ENDED.has(status);
}

/** A badge. `label` replaces the state's own word. */
export function statusBadge(status, label) {
  return h(
    "span", { class: "badge", "data-tone": tone(status), "data-status": status, "data-live": status === "running" },
    icon(statusIcon(status)), label ?? words(status),
  );
}
