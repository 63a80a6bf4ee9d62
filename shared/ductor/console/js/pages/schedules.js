// All schedules: what fires when, and what became of the last time.

import { h, put } from "../dom.js";
import { api } from "../api.js";
import { dateTime, relative } from "../format.js";
import { poll } from "../poll.js";
import { href, navigate } from "../router.js";
import { emptyState, errorNotice } from "../ui/notice.js";
import { statusBadge } from "../ui/status.js";
import { table } from "../ui/table.js";
import { timetable } from "../definitions/words.js";
import { outcomeBadge } from "../operate/occurrences.js";

const at = (one) => [`/schedules/${encodeURIComponent(one.family_slug)}`, { environment: one.environment }];

export function render(ctx) {
  ctx.title("Schedules");
  const note = h("div", null);
  const list = table({
    label: "Schedules", key: (one) => `${one.family_slug}@${one.environment}`, onOpen: (one) => navigate(...at(one)),
    same: (a, b) => JSON.stringify(a) === JSON.stringify(b) && Date.parse(a.next_occurrence_at) > Date.now(), columns: columns(),
  });
  list.hidden = true;
  let before = "";
  const poller = poll(async (signal) => {
    const all = [];
    let cursor = null;
    do {
      const page = await api.get("/api/workflow-schedules", { query: { limit: 200, cursor }, signal });
      all.push(...page.data);
      cursor = page.next_cursor;
    } while (cursor && all.length < 2000);
    list.update(all);
    list.hidden = !all.length;
    put(
      note,
      !all.length && emptyState(
        "No schedules",
        "A definition with a schedule starts runs on a timetable as soon as it is published.",
        h("a", { class: "button", href: href("/definitions/new", { template: "nightly" }) }, "Begin with one"),
      ),
    );
    const now = JSON.stringify(all);
    const same = now === before;
    before = now;
    return same ? "same" : "changed";
  }, { fastest: 3000, onError: (error) => put(note, errorNotice(error)) });
  return {
    element: h("div", { class: "page" }, h("div", { class: "page-head" }, h("h1", null, "Schedules")), note, list),
    dispose: () => poller.stop(),
  };
}

function columns() {
  return [
    {
      title: "Workflow",
      cell: (one) => h("div", { class: "two-lines" },
        h("a", { class: "strong cut", href: href(...at(one)) }, one.family_slug),
        h("span", { class: "muted small" }, `v${one.definition_version} · ${one.environment}`),
      ),
    },
    { title: "State", cell: (one) => (one.paused ? statusBadge("paused") : statusBadge("published", "Active")) },
    { title: "Timetable", cell: (one) => h("code", null, timetable(one)) },
    {
      title: "Next",
      class: "nowrap",
      cell: (one) => (one.next_occurrence_at ? h("span", { title: dateTime(one.next_occurrence_at) },
        relative(one.next_occurrence_at),
      ) : h("span", { class: "faint" }, "None")),
    },
    {
      title: "Last",
      class: "nowrap",
      cell: (one) => (one.last_occurrence ? h("span", { class: "row" },
        outcomeBadge(one.last_occurrence),
        h("span", { class: "muted", title: dateTime(one.last_occurrence.scheduled_at) }, relative(one.last_occurrence.scheduled_at)),
      ) : h("span", { class: "faint" }, "Never")),
    },
    { title: "Fired", class: "num", cell: (one) => String(one.counts.fired) },
    { title: "Not fired", class: "num", cell: (one) => String(one.counts.skipped + one.counts.missed + one.counts.refused) },
  ];
}
