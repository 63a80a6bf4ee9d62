// The filters of the list of runs: fields on the page, names in the address and in the API's query.

import { clear, h, put } from "../dom.js";
import { href } from "../router.js";
import { button, iconButton } from "../ui/buttons.js";
import { icon } from "../ui/icons.js";
import { RUN_STATUSES } from "../ui/status.js";
import { words } from "../format.js";

/** Everything that the API takes, with the words for it. */
export const FILTERS = {
  q: "Search",
  status: "Status",
  active_only: "Active only",
  workflow_type: "Workflow",
  started_after: "Started after",
  started_before: "Started before",
  environment: "Environment",
  subject_type: "Subject type",
  subject_id: "Subject id",
  schedule: "Schedule",
  definition_id: "Definition id",
  parent_run_id: "Parent run",
  root_run_id: "Root run",
  journey_id: "Journey",
};

const VIEWS = [
  ["All", {}],
  ["Active", { active_only: "true" }],
  ["Waiting", { status: "waiting" }],
  ["Failed", { status: "failed" }],
];
const TIMES = [["", "Any time"], ["-15m", "Last 15 minutes"], ["-1h", "Last hour"], ["-24h", "Last 24 hours"], ["-7d", "Last 7 days"], ["-30d", "Last 30 days"]];
const MORE = ["environment", "subject_type", "subject_id", "schedule", "definition_id", "started_before", "parent_run_id", "root_run_id", "journey_id"];
const SHOWN_APART = new Set(["q", "workflow_type", "started_after"]);

/** Those entries of an address's query that are filters. */
export function filtersOf(query) {
  return Object.fromEntries(Object.entries(query).filter(([name, value]) => value && (name in FILTERS || /^(label|attr)\../.test(name))));
}

/**
 * The bar above the list.
 * @param {function(Object): void} change gets the changed entries; null removes one
 * @returns {HTMLElement & {show: function(Object): void, workflows: function(Array<string>): void}}
 */
export function filterBar(change) {
  const views = h("div", { class: "segments", role: "group", "aria-label": "Views" }, VIEWS.map(([label, filter]) => h("button", {
    type: "button", dataset: { view: label }, onclick: () => change({ status: filter.status ?? null, active_only: filter.active_only ?? null }),
  }, label)));
  const search = h("input", { class: "input", type: "search", placeholder: "Search runs", title: "A part of the run id, workflow, subject or a label", "aria-label": "Search", oninput: later(() => change({ q: search.value.trim() || null })) });
  const known = h("datalist", { id: "known-workflows" });
  const workflow = h("input", { class: "input", placeholder: "Any workflow", "aria-label": "Workflow", list: "known-workflows", onchange: () => change({ workflow_type: workflow.value.trim() || null }) });
  const time = h("select", { class: "select", "aria-label": "Started", onchange: () => change({ started_after: time.value || null }) });
  const more = morePanel(change);
  const opener = button("Filters", { icon: "filter", "aria-expanded": "false", onclick: () => {
    more.hidden = !more.hidden;
    opener.setAttribute("aria-expanded", String(!more.hidden));
    if (!more.hidden) more.querySelector("select,input").focus();
  } });
  const chips = h("div", { class: "row wrap chips" });
  const element = h("div", { class: "stack run-filters" },
    h("div", { class: "run-filter-row" }, views, h("div", { class: "search" }, icon("search"), search), workflow, known, time, opener), more, chips);

  function show(filters) {
    for (const one of views.children) {
      const filter = VIEWS.find(([label]) => label === one.dataset.view)[1];
      one.setAttribute("aria-pressed", String((filter.status ?? "") === (filters.status ?? "") && (filter.active_only ?? "") === (filters.active_only ?? "")));
    }
    if (document.activeElement !== search) search.value = filters.q ?? "";
    if (document.activeElement !== workflow) workflow.value = filters.workflow_type ?? "";
    const after = filters.started_after ?? "";
    const choices = TIMES.some(([value]) => value === after) ? TIMES : [...TIMES, [after, `After ${after}`]];
    put(time, choices.map(([value, label]) => h("option", { value }, label)));
    time.value = after;
    more.show(filters);
    clear(chips);
    const extra = Object.entries(filters).filter(([name, value]) => !SHOWN_APART.has(name) && !VIEWS.some(([label, filter]) => label !== "All" && filter[name] === value));
    for (const [name, value] of extra) chips.append(chip(name, value, change));
    if (Object.keys(filters).length) chips.append(h("a", { class: "small", href: href("/runs") }, "Clear all filters"));
    chips.hidden = !chips.childElementCount;
  }
  return Object.assign(element, {
    show,
    workflows: (slugs) => put(known, slugs.map((slug) => h("option", { value: slug }))),
  });
}

function chip(name, value, change) {
  const text = `${FILTERS[name] ?? name.replace(".", " ")}: ${name === "status" ? words(value) : value}`;
  return h("span", { class: "chip" }, text, iconButton("cross", `Remove the filter ${text}`, { kind: "quiet tiny", onclick: () => change({ [name]: null }) }));
}

function morePanel(change) {
  const status = h("select", { class: "select", onchange: () => change({ status: status.value || null, active_only: null }) },
    h("option", { value: "" }, "Any"), RUN_STATUSES.map((one) => h("option", { value: one }, words(one))));
  const inputs = MORE.map((name) => h("input", { class: "input", name, placeholder: name === "started_before" ? "-1h or 2026-07-11T10:00:00Z" : "", onchange: (event) => change({ [name]: event.target.value.trim() || null }) }));
  const pairs = ["label", "attr"].map((kind) => pair(kind, change));
  const labelled = (title, control) => h("label", { class: "field" }, h("span", { class: "label small muted" }, title), control);
  const element = h("div", { class: "card pad more-filters", hidden: true },
    labelled("Status", status), inputs.map((input) => labelled(FILTERS[input.name], input)), pairs);
  return Object.assign(element, {
    show(filters) {
      status.value = filters.status ?? "";
      for (const input of inputs) if (document.activeElement !== input) input.value = filters[input.name] ?? "";
    },
  });
}

/** A label or attribute: a name and its value. */
function pair(kind, change) {
  const title = kind === "label" ? "Label" : "Attribute";
  const name = h("input", { class: "input", placeholder: "name", "aria-label": `${title} name` });
  const value = h("input", { class: "input", placeholder: "value", "aria-label": `${title} value` });
  const apply = () => {
    if (name.value.trim() && value.value.trim()) {
      change({ [`${kind}.${name.value.trim()}`]: value.value.trim() });
      name.value = value.value = "";
    }
  };
  value.addEventListener("change", apply);
  name.addEventListener("change", apply);
  return h("div", { class: "field" }, h("span", { class: "label small muted" }, title), h("div", { class: "row" }, name, value));
}

function later(act, ms = 300) {
  let timer = null;
  return () => {
    clearTimeout(timer);
    timer = setTimeout(act, ms);
  };
}
