// What became of the occurrences of a schedule.

import { h } from "../dom.js";
import { dateTime, words } from "../format.js";
import { statusBadge } from "../ui/status.js";
import { table } from "../ui/table.js";

const LOOKS = { fired: "completed", skipped: "skipped", missed: "timed_out", refused: "failed" };

/** The outcome of an occurrence, as icon and word. */
export function outcomeBadge(occurrence) {
  return statusBadge(
    LOOKS[occurrence.outcome] ?? "pending",
    words(occurrence.outcome) + (occurrence.count > 1 ? ` × ${occurrence.count}` : ""),
  );
}

/** A table of occurrences, newest first. */
export function occurrenceTable() {
  return table({
    label: "Occurrences", key: (one) => `${one.scheduled_at}/${one.by}/${one.run_id}/${one.outcome}`,
    columns: [
      {
        title: "At",
        class: "nowrap",
        cell: (one) => [dateTime(one.scheduled_at), one.until && h("span", { class: "muted" }, ` to ${dateTime(one.until)}`)],
      },
      { title: "Outcome", cell: outcomeBadge },
      { title: "Why", cell: why },
      { title: "Version", cell: (one) => `v${one.definition_version}` },
      {
        title: "Run",
        cell: (one) => (one.run_id ? h("a", { href: `#/runs/${one.run_id}` }, h("code", null, one.run_id.slice(0, 13))) : ""),
      },
    ],
  });
}

function why(one) {
  if (one.outcome === "skipped") return h("span", { class: "muted" }, "An earlier run was active");
  if (one.outcome === "missed") return h("span", { class: "muted" }, "Came too late");
  if (one.outcome === "refused") return h("span", { class: "break" }, h("code", null, one.code), ` ${one.message}`);
  return h("span", { class: "muted" }, one.by ? `By request ${one.by}` : "By the timetable");
}
