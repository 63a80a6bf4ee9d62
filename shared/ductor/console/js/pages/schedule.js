// One schedule: what comes, what came, and its controls.

import { h, put } from "../dom.js";
import { api, newRequestId } from "../api.js";
import { dateTime, duration, relative, words } from "../format.js";
import { poll } from "../poll.js";
import { href, setQuery } from "../router.js";
import { button } from "../ui/buttons.js";
import { dialog, field } from "../ui/dialog.js";
import { emptyState, errorNotice, notice } from "../ui/notice.js";
import { statusBadge } from "../ui/status.js";
import { table } from "../ui/table.js";
import { tabs } from "../ui/tabs.js";
import { toast } from "../ui/toast.js";
import { timetable } from "../definitions/words.js";
import { occurrenceTable, outcomeBadge } from "../operate/occurrences.js";

const UPCOMING = 8;
const TABS = [["occurrences", "Occurrences"], ["audit", "Who did what"]];

export function render(ctx) {
  const family = ctx.params.family;
  const root = `/api/workflow-schedules/${encodeURIComponent(family)}`;
  let { query } = ctx;
  ctx.title(`Schedule of ${family}`);
  const top = h("div", { class: "stack" });
  const history = pagedHistory(root, () => query, ctx.signal);
  const bar = tabs(TABS, query.tab ?? "occurrences", (tab) => setQuery({ tab: tab === "occurrences" ? null : tab }));
  let before = "";

  async function look(signal) {
    const where = { environment: query.environment };
    const [{ data: schedule }, { data: preview }] = await Promise.all([
      api.get(root, { query: where, signal }), api.get(`${root}/preview`, { query: { ...where, count: UPCOMING }, signal }),
    ]);
    const now = JSON.stringify([schedule, preview]);
    if (now === before) return "same";
    before = now;
    put(top, head(schedule, control), h("div", { class: "schedule-split" }, facts(schedule), upcoming(schedule, preview)));
    history.load();
    return "changed";
  }
  async function control(schedule, verb) {
    if (await CONTROLS[verb](`${root}:${verb}`, schedule)) {
      before = "";
      poller.now();
    }
  }
  const poller = poll(look, { fastest: 2000, onError: (error) => put(top, errorNotice(error)) });
  return {
    element: h("div", { class: "page" }, top, bar, h("div", { id: "tab-panel", role: "tabpanel" }, history.element)),
    update(next) {
      query = next.query;
      bar.select(query.tab ?? "occurrences");
      history.load();
    },
    dispose: () => poller.stop(),
  };
}

function head(schedule, control) {
  return h("div", { class: "page-head" },
    h("div", { class: "title-block" }, h("nav", { class: "crumbs", "aria-label": "Where" },
      h("a", { href: "#/schedules" }, "Schedules"),
      " / ",
      schedule.environment,
    ),
      h("div", { class: "row wrap" },
        h("h1", { class: "break" }, schedule.family_slug),
        schedule.paused ? statusBadge("paused") : statusBadge("published", "Active"),
      )),
    h("div", { class: "row wrap" },
      h("a", { class: "button", href: href("/runs", { schedule: schedule.family_slug }) }, "Its runs"),
      button("Backfill…", { onclick: () => control(schedule, "backfill") }), button(
        "Run now…",
        { onclick: () => control(schedule, "triggerNow") },
      ),
      schedule.paused ? button(
        "Resume…",
        { kind: "primary", icon: "play", onclick: () => control(schedule, "resume") },
      ) : button("Pause…", { icon: "pause", onclick: () => control(schedule, "pause") })));
}

function facts(schedule) {
  const { counts } = schedule;
  const lines = [
    ["Timetable", h("code", null, timetable(schedule))],
    ["Version", h("a", { href: `#/definitions/${schedule.definition_id}` }, `v${schedule.definition_version}`)],
    ["While one is active", schedule.overlap_policy === "skip" ? "skip the next" : "start all the same"],
    ["Late ones count within", schedule.catch_up_window_ms ? duration(schedule.catch_up_window_ms) : null],
    ["Spread over", schedule.jitter_ms ? duration(schedule.jitter_ms) : null],
    ["From", schedule.start_at && dateTime(schedule.start_at)],
    ["Until", schedule.end_at && dateTime(schedule.end_at)],
    [
      "Last",
      schedule.last_occurrence && h("span", { class: "row wrap" },
        outcomeBadge(schedule.last_occurrence),
        relative(schedule.last_occurrence.scheduled_at),
      ),
    ],
    ["So far", `${counts.fired} fired, ${counts.skipped} skipped, ${counts.missed} missed, ${counts.refused} refused`],
    [
      "Paused by",
      schedule.paused ? { operator: "an operator", document: "the definition" }[schedule.paused_by] ?? schedule.paused_by : null,
    ],
  ].filter(([, value]) => value);
  return h("div", { class: "card pad stack" }, h("dl", { class: "facts" },
    lines.map(([name, value]) => [h("dt", null, name), h("dd", null, value)]),
  ),
    !schedule.scheduler_in_sync && notice(
      "waiting",
      null,
      "The scheduler outside has not been told of the last change yet; the schedule fires all the same.",
    ));
}

function upcoming(schedule, preview) {
  const items = preview.occurrences;
  return h("section", { class: "card pad stack" }, h("h3", null, schedule.paused ? "Would come next (paused)" : "Comes next"),
    items.length > 0 && h("p", { class: "small muted" }, `As this machine tells the time: ${Intl.DateTimeFormat().resolvedOptions().timeZone}`),
    items.length ? h("ol", { class: "coming" },
      items.map((at) => h("li", { class: "spread" }, h("span", null, dateTime(at)), h("span", { class: "muted" }, relative(at)))),
    ) : h("p", { class: "muted" }, "Nothing: the timetable has ended."));
}

function pagedHistory(root, query, signal) {
  const occurrences = occurrenceTable();
  const audit = auditTable();
  const foot = h("div", { class: "row" });
  const note = h("div", null);
  const element = h("div", { class: "stack" }, note, occurrences, audit, foot);
  let rows = [];
  let shown = "";

  async function load(cursor = null) {
    const tab = query().tab === "audit" ? "audit" : "occurrences";
    try {
      const page = await api.get(`${root}/${tab}`, { query: { environment: query().environment, limit: 50, cursor }, signal });
      rows = cursor && shown === tab ? [...rows, ...page.data] : page.data;
      shown = tab;
      (tab === "audit" ? audit : occurrences).update(rows);
      occurrences.hidden = tab === "audit" || !rows.length;
      audit.hidden = tab !== "audit" || !rows.length;
      put(note, !rows.length && emptyState(tab === "audit" ? "Nobody has intervened" : "No occurrence yet"));
      put(foot, page.next_cursor && button("More", { onclick: () => load(page.next_cursor) }));
    } catch (error) {
      if (error.name !== "AbortError") put(note, errorNotice(error));
    }
  }
  return { element, load: () => load() };
}

function auditTable() {
  return table({
    label: "Audit", key: (one) => `${one.request_id}/${one.operation}/${one.at}`,
    columns: [
      { title: "At", class: "nowrap", cell: (one) => dateTime(one.at) },
      { title: "What", cell: (one) => words(one.operation) },
      { title: "By key", cell: (one) => h("code", null, one.actor) },
      { title: "Reason", cell: (one) => h("span", { class: "break" }, one.reason) },
      {
        title: "Run",
        cell: (one) => (one.run_id ? h("a", { href: `#/runs/${one.run_id}` }, h("code", null, one.run_id.slice(0, 13))) : ""),
      },
    ],
  });
}

const reason = () => field({ name: "reason", label: "Reason", placeholder: "Goes into the audit trail" });

async function ask(path, schedule, { title, body, action, fields, done }) {
  const request_id = newRequestId();
  const answer = await dialog({
    title: `${title} ${schedule.family_slug}`, body: [h("p", null, body)], action, fields,
    submit: (values) => api.post(path, { request_id, environment: schedule.environment, ...values }),
  });
  if (answer) toast(
    "done",
    done(answer.data ?? answer),
    (answer.data ?? answer).run_id && h("a", { href: `#/runs/${(answer.data ?? answer).run_id}` }, "Open the run"),
  );
  return answer;
}

const CONTROLS = {
  pause: (path, schedule) => ask(
    path,
    schedule,
    {
      title: "Pause",
      body: "Nothing fires until somebody resumes it. Runs go on.",
      action: "Pause",
      fields: [reason()],
      done: () => "Paused",
    },
  ),
  resume: (path, schedule) => ask(
    path,
    schedule,
    {
      title: "Resume",
      body: "It fires again from now on. What lay in the pause is not caught up; a backfill does that.",
      action: "Resume",
      fields: [reason()],
      done: () => "Resumed",
    },
  ),
  triggerNow: (path, schedule) => ask(path, schedule, {
    title: "Run now:", body: "Starts one run, paused or not. The timetable goes on as it is.", action: "Start the run", done: () => "A run was started",
    fields: [
      field({
        name: "overlap_policy",
        label: "While a run is active",
        kind: "select",
        options: [["", "As the schedule says"], ["allow_all", "Start all the same"], ["skip", "Refuse"]],
      }),
      reason(),
    ],
  }),
  backfill: (path, schedule) => ask(path, schedule, {
    title: "Backfill", body: "Starts the runs of past occurrences that did not fire, both ends included, at most 1,000.", action: "Backfill",
    done: (answer) => `Backfill ${answer.status}: ${answer.started} started, ${answer.fired_before} had fired before`,
    fields: [
      field({
        name: "start_at",
        label: "From",
        value: "-1d",
        required: true,
        hint: "A distance back from now such as -1d or -6h, or an RFC 3339 time",
      }),
      field({ name: "end_at", label: "To", value: "-1m", required: true }),
      field({
        name: "overlap_policy",
        label: "While a run is active",
        kind: "select",
        options: [["allow_all", "Start all"], ["skip", "Skip"]],
      }), reason(),
    ],
  }),
};
