// The head of a run's page: what it is, how it stands in one sentence, whose it is, what it belongs to, what it costs.

import { h, put } from "../dom.js";
import { api } from "../api.js";
import { between, dateTime, money, phrase, shortType } from "../format.js";
import { href } from "../router.js";
import { button, copyButton } from "../ui/buttons.js";
import { icon } from "../ui/icons.js";
import { ago, live, refreshLive } from "../ui/live.js";
import { errorNotice, notice } from "../ui/notice.js";
import { statusBadge, terminal } from "../ui/status.js";
import { runControls } from "./controls.js";
import { waitDetail, waitSentence } from "./words.js";

/** @returns {HTMLElement & {show: function(object): void}} */
export function runHeader(store) {
  const title = h("div", { class: "stack run-title" });
  const actions = h("div", null);
  const banner = h("div", { class: "stack" });
  const facts = h("dl", { class: "run-facts" });
  const cost = h("span", { class: "faint" }, "…");
  let costOf = null;
  const drawn = new Map();
  const element = h("div", { class: "stack" }, h("div", { class: "page-head" }, title, actions), banner, facts);

  // Made anew only when what it shows has changed: the focus, an open menu and what a screen reader reads stay.
  function redraw(place, what, make) {
    const key = JSON.stringify(what);
    if (drawn.get(place) === key) return;
    drawn.set(place, key);
    put(place, make());
  }

  function show({ summary, error }) {
    redraw(banner, [error?.message, summary?.stalled, summary?.error, Boolean(store.state.definition)], () => [
      error && errorNotice(error, summary ? "The run cannot be read just now; this is how it was" : undefined, { again: true }),
      error && !summary && h("div", null, h("a", { class: "button", href: href("/runs") }, "All runs")),
      summary?.stalled ? stalled(summary, actions)
        : summary?.error && notice("failed", h("span", null, h("code", null, summary.error.code), " ", summary.error.message), toStep(summary, failedStep(summary, store.state))),
    ]);
    if (!summary) return;
    const state = [summary.status, Boolean(summary.stalled)];
    redraw(title, [state, summary.waiting_on?.kind, summary.waiting_on?.detail], () => [crumbs(summary), h("div", { class: "row wrap" },
      h("h1", { class: "break" }, summary.subject_id ? `${summary.subject_type} ${summary.subject_id}` : summary.workflow_type), statusBadge(summary.status), summary.stalled && statusBadge("stalled")),
    h("p", { class: "run-sentence muted break" }, live(() => sentence(store.state.summary, store.state)), " ", next(summary, store.state))]);
    redraw(actions, state, () => runControls(store));
    redraw(facts, [state, summary.started_at, summary.finished_at, summary.deadline_at], () => entries(summary, cost));
    refreshLive(title);
    if (costOf !== summary.db_record_version) {
      costOf = summary.db_record_version;
      readCost(store, cost);
    }
  }
  return Object.assign(element, { show });
}

const ENDS = {
  completed: "completed", failed: "failed", timed_out: "timed out", cancelled: "was cancelled", terminated: "was terminated",
  continued_as_new: "went on as a new run", merged: "was merged into another run",
};

function crumbs(summary) {
  return h("div", { class: "row wrap small crumbs" }, h("a", { href: href("/runs") }, "Runs"), h("span", { class: "faint" }, "/"),
    h("a", { href: href("/runs", { workflow_type: summary.workflow_type }) }, summary.workflow_type), h("span", { class: "faint" }, "/"),
    h("code", { class: "break faint" }, summary.run_id), copyButton(summary.run_id, "Copy the run id"));
}

function sentence(summary, state) {
  if (summary.stalled) return "The coordinator cannot advance this run. Nothing is lost: what arrives for it is kept in order.";
  if (terminal(summary.status)) {
    const took = between(summary.started_at, summary.finished_at);
    return `The run ${ENDS[summary.status] ?? `is ${phrase(summary.status)}`}${took ? ` after ${took}` : ""}${summary.reason ? `: ${summary.reason}` : ""}.`;
  }
  if (summary.status === "paused") return `The run is paused: nothing new starts until it is resumed.${summary.reason ? ` (${summary.reason})` : ""}`;
  if (summary.waiting_on) {
    const step = state.definition?.steps?.find((one) => one.ref === waitDetail(summary.waiting_on).step);
    return `${waitSentence(summary.waiting_on, { type: shortType(step?.type) })}.`;
  }
  if (summary.current_steps.length) return `At work: ${summary.current_steps.slice(0, 4).join(", ")}${summary.current_steps.length > 4 ? " and others" : ""}.`;
  return "The run is about to go on.";
}

/** Where to go from the sentence: to the step that is waited for, or to the run that goes on. */
function next(summary, state) {
  if (["continued_as_new", "merged"].includes(summary.status)) return h("a", { href: href(`/runs/${summary.run_id}`, { tab: "tree" }) }, "Where it goes on");
  if (summary.stalled || summary.status !== "waiting") return null;
  const { step } = waitDetail(summary.waiting_on);
  return step && known(step, state) && toStep(summary, step, summary.waiting_on.kind === "approval" ? "Decide" : "Open the step");
}

/** The step that a run's error names in front of its message. */
function failedStep(summary, state) {
  const [, step] = /^([^\s:]+): /.exec(summary.error.message) ?? [];
  return step && known(step, state) ? step : null;
}

const known = (id, state) => state.definition?.steps?.some((step) => step.ref === id.split("@")[0]);

function toStep(summary, step, label = "Open the step") {
  return step && h("a", { class: "to-step", href: href(`/runs/${summary.run_id}`, { node: step }) }, label);
}

function stalled(summary, actions) {
  return notice("failed", "Stalled", summary.stalled.reason, h("div", { class: "row small muted" }, "since ", ago(summary.stalled.since)),
    h("div", { class: "row" }, button("Redrive", { icon: "retry", onclick: () => actions.querySelector("[data-action=redrive]")?.click() })));
}

function entries(summary, cost) {
  const entry = (name, ...value) => h("div", null, h("dt", null, name), h("dd", null, value));
  const run = (id) => h("a", { class: "mono cut", href: href(`/runs/${id}`), title: id }, `…${id.slice(-12)}`);
  return [
    entry("Workflow", h("a", { href: href(`/definitions/${summary.definition_id}`) }, `${summary.workflow_type}@${summary.definition_version}`)),
    entry("Environment", summary.environment),
    entry("Started", summary.started_at ? ago(summary.started_at) : "not yet"),
    terminal(summary.status) ? entry("Ended", ago(summary.finished_at)) : summary.deadline_at && entry("Times out", ago(summary.deadline_at)),
    entry("Duration", live(() => between(summary.started_at, summary.finished_at) || "–", { title: `${dateTime(summary.started_at)} – ${dateTime(summary.finished_at)}` })),
    entry("Cost on AWS", cost),
    summary.correlation_labels.length > 0 && entry("Labels", h("span", { class: "row wrap" }, summary.correlation_labels.map((label) => h("a", { class: "chip", href: href("/runs", { [`label.${label.key}`]: label.id }) }, `${label.key} ${label.id}`)))),
    summary.parent_run_id && entry("Parent", run(summary.parent_run_id), summary.parent_node && h("span", { class: "faint small" }, ` step ${summary.parent_node}`)),
    summary.root_run_id !== summary.run_id && summary.root_run_id !== summary.parent_run_id && entry("Root", run(summary.root_run_id)),
    summary.source_run_id && entry(summary.root_run_id === summary.run_id ? "Forked from" : "Continues", run(summary.source_run_id)),
    summary.schedule && entry("Schedule", h("a", { href: href(`/schedules/${summary.schedule}`) }, summary.schedule), summary.scheduled_at && h("span", { class: "faint small" }, ` for ${dateTime(summary.scheduled_at)}`)),
    summary.external_deployment_id && entry("Release", summary.external_deployment_id),
    summary.kind !== "workflow" && entry("Kind", summary.kind),
  ];
}

async function readCost(store, place) {
  try {
    const { data } = await api.get(`${store.paths.v1}/cost`);
    const lines = data.at_load.lines.map((line) => `${line.service}, ${line.unit}: ${money(line.amount, data.currency)}`).join("\n");
    place.title = `An estimate by the list prices of ${data.prices_as_of} in ${data.region}. Not included: ${data.not_included.join(", ")}.\n\n${lines}`;
    put(place, money(data.at_load.amount, data.currency), data.runs_below > 0 && h("span", { class: "faint small" }, ` + ${money(data.below_at_load, data.currency)} below`), " ", h("span", { class: "faint cost-info" }, icon("info")));
    place.className = "cost";
  } catch {
    put(place, "not known");
  }
}
