// What a definition says, in words. Pure.

import { duration, phrase, plural } from "../format.js";
import { short } from "../graph/scopes.js";

/** `up to 5 attempts, 1.0 s apart, then 2 times longer each, at most 5m`; empty when a step is tried once. */
export function retryWords(step) {
  const attempts = step.retry_max_attempts ?? 1;
  if (!(attempts > 1)) return "";
  const parts = [`up to ${plural(attempts, "attempt")}`, `first pause ${duration(step.retry_backoff_ms ?? 1000)}`];
  const factor = step.retry_backoff_multiplier ?? 2;
  if (factor !== 1) parts.push(`each ${factor} times longer, at most ${duration(step.retry_max_backoff_ms ?? 300_000)}`);
  if (step.retry_max_elapsed_ms) parts.push(`within ${duration(step.retry_max_elapsed_ms)}`);
  if (step.non_retryable_codes?.length) parts.push(`not for ${step.non_retryable_codes.join(", ")}`);
  return parts.join("; ");
}

/** A timetable in words: `0 2 * * MON-FRI in Europe/Berlin`, `every 5m`. Takes a document's schedule or an API answer. */
export function timetable(schedule) {
  const zone = schedule.timezone && schedule.timezone !== "UTC" ? ` in ${schedule.timezone}` : schedule.cron ? " UTC" : "";
  if (schedule.cron) return `${schedule.cron}${zone}`;
  return `every ${schedule.rate_ms ? duration(schedule.rate_ms) : schedule.rate ?? "?"}`;
}

/** When an edge is taken: `on success`, `on approved`. */
export function edgeWords(edge) {
  const type = short(edge.type) || "success";
  return `on ${phrase(type)}`;
}

/** A value on one line. */
export function brief(value, length = 80) {
  if (value === undefined) return "nothing";
  const text = typeof value === "string" ? value : JSON.stringify(value);
  return text.length > length ? `${text.slice(0, length - 1)}…` : text;
}

/**
 * An answer of the diff route as sentences, grouped.
 * @returns {{title: string, items: {kind: "added"|"removed"|"changed", words: string, before?: *, after?: *}[]}[]}
 */
export function changesInWords(diff) {
  const groups = [
    { title: "Definition", items: diff.fields.map((change) => fieldChange("", change)) },
    {
      title: "Steps",
      items: [
        ...diff.steps.added.map((step) => ({ kind: "added", words: `Step ${named(step)} is new`, after: step })),
        ...diff.steps.removed.map((step) => ({ kind: "removed", words: `Step ${named(step)} is gone`, before: step })),
        ...diff.steps.changed.flatMap((step) => step.fields.map((change) => fieldChange(`${step.ref}: `, change))),
      ],
    },
    {
      title: "Edges",
      items: [
        ...diff.edges.added.map((edge) => ({ kind: "added", words: `${arrow(edge)} is new`, after: edge.condition })),
        ...diff.edges.removed.map((edge) => ({ kind: "removed", words: `${arrow(edge)} is gone`, before: edge.condition })),
        ...diff.edges.changed.flatMap((edge) => edge.fields.map((change) => fieldChange(`${arrow(edge)}: `, change))),
      ],
    },
  ];
  return groups.filter((group) => group.items.length);
}

const named = (step) => `${step.ref ?? step.id} (${phrase(short(step.type))}${step.action ? `, ${step.action}` : ""})`;
const arrow = (edge) => `${edge.source_ref} → ${edge.target_ref} (${phrase(short(edge.type) || "success")})`;

function fieldChange(prefix, change) {
  const { field, before, after } = change;
  const kind = ["added", "removed"].includes(change.change) ? change.change : "changed";
  const words = { added: `${prefix}${field} was set`, removed: `${prefix}${field} was taken out`, changed: `${prefix}${field} changed` };
  return { kind, words: words[kind], before: kind === "added" ? undefined : before, after: kind === "removed" ? undefined : after };
}
