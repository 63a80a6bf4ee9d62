// A definition around its graph: what starts it, what it takes, its limits, its latest runs.

import { h, put } from "../dom.js";
import { api } from "../api.js";
import { duration, relative } from "../format.js";
import { href } from "../router.js";
import { jsonView } from "../ui/json.js";
import { statusBadge } from "../ui/status.js";
import { short } from "../graph/scopes.js";
import { timetable } from "./words.js";

const RECENT = 6;

/** @param {object} definition as the API answers it @param {AbortSignal} signal */
export function overview(definition, signal) {
  return h("section", { class: "panel", "aria-label": "Definition" },
    definition.description && h("p", { class: "break" }, definition.description),
    facts(definition), latestRuns(definition, signal),
    ...["input_schema", "variables", "triggers", "checkpoints", "output", "hooks"].map((name) => part(name, definition[name])));
}

const TITLES = {
  input_schema: "Input schema", variables: "Variables", triggers: "Started by events", checkpoints: "Checkpoints", output: "Output", hooks: "Hooks",
};

function part(name, value) {
  const blank = value === undefined || value === null || (typeof value === "object" && !Object.keys(value).length);
  return blank ? null : h("div", { class: "panel-part" }, h("h3", null, TITLES[name]), jsonView(value, { open: 1 }));
}

function facts(definition) {
  const { schedule, concurrency } = definition;
  const lines = [
    ["Environment", definition.environment && h("code", null, definition.environment)],
    ["Steps", `${definition.steps?.length ?? 0}, ${definition.edges?.length ?? 0} edges`],
    ["Schedule", schedule && h("a", { href: href(`/schedules/${encodeURIComponent(definition.family_slug)}`) }, timetable(schedule))],
    [
      "Concurrency",
      concurrency && [
        `${concurrency.limit} at a time by `,
        h("code", { class: "break" }, concurrency.key),
        `, others ${short(concurrency.on_limit ?? "queue").replace("_", " ")}`,
      ],
    ],
    ["Time limit", definition.run_timeout_ms > 0 && duration(definition.run_timeout_ms)],
    [
      "Tags",
      definition.tags?.length > 0 && h("span", { class: "row wrap" }, definition.tags.map((tag) => h("span", { class: "chip" }, tag))),
    ],
    ["Published", definition.published_at && relative(definition.published_at)],
    ["Changed", definition.updated_at && relative(definition.updated_at)],
  ].filter(([, value]) => value);
  return h("dl", { class: "facts" }, lines.map(([name, value]) => [h("dt", null, name), h("dd", null, value)]));
}

function latestRuns(definition, signal) {
  const list = h("div", { class: "small muted" }, "Reading…");
  const all = h("a", { class: "small", href: href("/runs", { workflow_type: definition.family_slug }) }, "All runs");
  api.get("/api/workflows/runs", { query: { workflow_type: definition.family_slug, limit: RECENT }, signal })
    .then(({ data }) => put(list, data.length ? h("ul", { class: "recent" }, data.map(runLine)) : "No run yet."))
    .catch((error) => error.name !== "AbortError" && put(list, error.message));
  return h("div", { class: "panel-part" }, h("div", { class: "spread" }, h("h3", null, "Latest runs"), all), list);
}

function runLine(run) {
  return h("li", null, statusBadge(run.status), h("a", { class: "cut grow", href: href(`/runs/${run.run_id}`) },
    run.subject_id || run.run_id,
  ),
    h("span", { class: "muted nowrap" }, `v${run.definition_version} · ${relative(run.created_at)}`));
}
