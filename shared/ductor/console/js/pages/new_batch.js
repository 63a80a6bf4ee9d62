// A new batch: a control, a filter, and a look at the runs that match before anything is sent.

import { h, put } from "../dom.js";
import { api, newRequestId } from "../api.js";
import { plural, relative } from "../format.js";
import { navigate } from "../router.js";
import { button, iconButton } from "../ui/buttons.js";
import { dialog, field } from "../ui/dialog.js";
import { emptyState, errorNotice } from "../ui/notice.js";
import { RUN_STATUSES, statusBadge } from "../ui/status.js";
import { table } from "../ui/table.js";
import { FILTERS, filterWords, fitting, isFilter, OPERATIONS, remember } from "../operate/batches.js";

const SAMPLE = 25;
const VALUES = { status: RUN_STATUSES, active_only: ["true"] };

export function render(ctx) {
  ctx.title("New batch");
  const given = Object.entries(ctx.query).filter(([name, value]) => isFilter(name) && value);
  const rows = h("div", { class: "stack-s" });
  const sample = h("div", { class: "stack" });
  const reason = field({ name: "reason", label: "Reason", placeholder: "Goes into the audit trail of every run" });
  let operation = OPERATIONS.find((one) => one.id === ctx.query.operation) ?? fitting(ctx.query.status);
  let timer = null;
  let turn = 0;
  const send = button("Begin the batch…", { type: "submit", kind: "primary" });
  const choices = OPERATIONS.map((one) => h("label", { class: "choice" },
    h("input", { type: "radio", name: "operation", value: one.id, checked: one === operation, onchange: () => (operation = one) }),
    h("span", null, h("strong", null, one.label), h("span", { class: "muted small" }, one.words))));
  const changed = () => {
    clearTimeout(timer);
    timer = setTimeout(look, 300);
  };
  const add = (name = "workflow_type", value = "") => rows.append(filterRow(name, value, changed));
  const filter = () => Object.fromEntries([...rows.children].map((row) => row.read()).filter(([name, value]) => name && value));

  async function look() {
    const mine = (turn += 1);
    const wanted = filter();
    if (!Object.keys(wanted).length) return put(
      sample,
      emptyState("No filter yet", "Name at least one thing that the runs have in common."),
    );
    try {
      const { data, next_cursor } = await api.get("/api/workflows/runs", { query: { ...wanted, limit: SAMPLE }, signal: ctx.signal });
      if (mine === turn) put(sample, matching(data, next_cursor));
    } catch (error) {
      if (mine === turn && error.name !== "AbortError") put(sample, errorNotice(error));
    }
    return undefined;
  }
  async function submit(event) {
    event.preventDefault();
    const wanted = filter();
    const request_id = newRequestId();
    const answer = await dialog({
      title: `${operation.label} all runs that match?`, action: `${operation.label} them`, danger: Boolean(operation.danger),
      body: [
        h("p", { class: "break" }, filterWords(wanted) || "No filter is set; the request will be refused."),
        h("p", { class: "muted" }, operation.words, " Runs that are admitted after this request are not meant."),
      ],
      submit: () => api.post(
        "/api/v2/workflow-runs:batch",
        { request_id, operation: operation.id, reason: reason.value(), filter: wanted },
      ),
    });
    if (!answer) return;
    remember({ id: answer.batch_id, operation: operation.id, filter: wanted, reason: reason.value(), at: answer.created_at });
    navigate(`/batches/${answer.batch_id}`);
  }
  (given.length ? given : [["workflow_type", ""]]).forEach(([name, value]) => add(name, value));
  look();
  return {
    element: h("div", { class: "page" },
      h("div", { class: "title-block" },
        h("nav", { class: "crumbs", "aria-label": "Where" }, h("a", { href: "#/batches" }, "Batches"), " / New"),
        h("h1", null, "New batch"),
      ),
      h("div", { class: "new-split" },
        h("form", { class: "stack", onsubmit: submit, novalidate: true },
          h("fieldset", { class: "choices" }, h("legend", null, "What to do"), choices),
          h("fieldset", { class: "choices" },
            h("legend", null, "With the runs for which all of this holds"),
            rows,
            h("div", null, button("Add a filter", { icon: "plus", kind: "quiet", onclick: () => add("status", "") })),
          ),
          reason, h("div", { class: "row" }, send)),
        h("section", { class: "stack" }, h("h2", null, "Runs that match now"), sample))),
    dispose: () => clearTimeout(timer),
  };
}

function filterRow(name, value, changed) {
  const names = FILTERS.includes(name) ? FILTERS : [...FILTERS, name];
  const own = h(
    "input",
    { class: "input", "aria-label": "Label or attribute", placeholder: "label.customer", hidden: true, oninput: changed },
  );
  const select = h("select", { class: "select", "aria-label": "Filter", onchange: () => { show(""); changed(); } },
    [
      ...names.map((one) => h("option", { value: one, selected: one === name }, one.replaceAll("_", " "))),
      h("option", { value: "*" }, "label or attribute…"),
    ]);
  const holder = h("div", { class: "grow" });
  let control = null;
  function show(text) {
    own.hidden = select.value !== "*";
    const values = VALUES[select.value];
    control = values
      ? h("select", { class: "select", "aria-label": "Value", onchange: changed },
        values.map((one) => h("option", { value: one, selected: one === text }, one)),
      )
      : h(
        "input",
        {
          class: "input",
          "aria-label": "Value",
          value: text,
          oninput: changed,
          placeholder: select.value.startsWith("started") ? "-1h or 2026-11-29T08:00:00Z" : "",
        },
      );
    put(holder, control);
  }
  show(value);
  const row = h("div", { class: "filter-row" },
    select,
    own,
    holder,
    iconButton("cross", "Remove the filter", { onclick: () => { row.remove(); changed(); } }),
  );
  return Object.assign(row, { read: () => [select.value === "*" ? own.value.trim() : select.value, control.value.trim()] });
}

function matching(runs, more) {
  if (!runs.length) return emptyState(
    more ? "None among the newest runs" : "No run matches",
    more ? "The batch looks at all of them." : "A batch now would do nothing.",
  );
  const list = table({
    label: "Matching runs", key: (run) => run.run_id,
    columns: [
      {
        title: "Run",
        cell: (run) => h("div", { class: "two-lines" },
          h("a", { class: "cut", href: `#/runs/${run.run_id}` }, run.subject_id || run.run_id),
          h("span", { class: "muted small cut" }, `${run.workflow_type} v${run.definition_version}`),
        ),
      },
      { title: "State", cell: (run) => statusBadge(run.status) },
      { title: "Begun", class: "nowrap", cell: (run) => h("span", { class: "muted" }, relative(run.created_at)) },
    ],
  });
  list.update(runs);
  return [h("p", { class: "muted" }, more ? `More than ${plural(runs.length, "run")}; the newest:` : plural(runs.length, "run")), list];
}
