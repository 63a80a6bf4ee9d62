// Batches: the controls they know, the filters they take, and which were begun in this browser (the API lists none).

import { session } from "../session.js";

const NAME = "ductor.batches";
const KEPT = 30;

/** Controls of many runs. @type {{id: string, label: string, words: string, danger?: boolean}[]} */
export const OPERATIONS = [
  { id: "pause", label: "Pause", words: "Nothing new starts in them until they are resumed." },
  { id: "resume", label: "Resume", words: "Paused runs go on." },
  { id: "redrive", label: "Redrive", words: "Failed runs go on from where they failed." },
  { id: "cancel", label: "Cancel", words: "They stop what is at work, compensate, and end as cancelled.", danger: true },
  { id: "terminate", label: "Terminate", words: "They end at once, without compensation.", danger: true },
];

const FITTING = { failed: "redrive", timed_out: "redrive", paused: "resume" };

/** The control to begin with for runs in this state: to pause what has failed would make no sense. */
export const fitting = (status) => OPERATIONS.find((one) => one.id === (FITTING[status] ?? "pause"));

/** Filters of the list of runs that a batch can have. */
export const FILTERS = [
  "workflow_type", "status", "active_only", "environment", "definition_id", "subject_type", "subject_id", "started_after", "started_before",
  "schedule", "journey_id", "root_run_id", "parent_run_id", "q",
];

/** Whether a name may be a filter: also `label.<key>` and `attr.<name>`. */
export const isFilter = (name) => FILTERS.includes(name) || /^(label|attr)\../.test(name);

/** A filter in words. */
export const filterWords = (filter) => Object.entries(filter).map(([name, value]) => `${name.replaceAll("_", " ")}: ${value}`).join(", ");

const all = () => {
  try {
    const found = JSON.parse(localStorage.getItem(NAME) ?? "[]");
    return Array.isArray(found) ? found : [];
  } catch {
    return [];
  }
};

/** Batches that were begun here, newest first. */
export const begunHere = () => all().filter((one) => one?.tenant === session()?.tenant);

/** Keeps what a batch is about: its answer does not say the filter. */
export function remember(entry) {
  const next = [{ ...entry, tenant: session()?.tenant }, ...all().filter((one) => one?.id !== entry.id)].slice(0, KEPT);
  try {
    localStorage.setItem(NAME, JSON.stringify(next));
  } catch { /* then it is known by its address alone */ }
}
