// The list of runs: filtered by the address, read page by page, kept fresh without moving under the reader.

import { h, on, put } from "../dom.js";
import { api } from "../api.js";
import { between } from "../format.js";
import { poll } from "../poll.js";
import { href, navigate, setQuery } from "../router.js";
import { filterBar, filtersOf } from "../run/filters.js";
import { waitsFor } from "../run/words.js";
import { button, copyButton } from "../ui/buttons.js";
import { ago, live } from "../ui/live.js";
import { emptyState, errorNotice } from "../ui/notice.js";
import { statusBadge, terminal } from "../ui/status.js";
import { table } from "../ui/table.js";

const PAGE = 50;
const MOST = 200;
const FASTEST_MS = 2000;
const SLOWEST_MS = 20_000;

/** @param {{query: Object, kept: Object|undefined, signal: AbortSignal, title: function(string): void}} ctx */
export function render(ctx) {
  let query = filtersOf(ctx.query);
  let rows = [];
  let cursor = null;
  let looks = null;

  const bar = filterBar((changes) => setQuery(changes));
  const list = table({ label: "Runs", columns: COLUMNS, key: (run) => run.run_id, same, onOpen: (run) => navigate(`/runs/${run.run_id}`) });
  list.classList.add("runs-table");
  const place = h("div", { class: "stack", "aria-busy": "true" }, placeholder());
  const trouble = h("div", null);
  const batch = h("a", { class: "button" }, "Act on these runs…");
  const fresh = h("span", { class: "small faint", role: "status" });
  const element = h("div", { class: "page" },
    h("div", { class: "page-head" }, h("h1", null, "Runs"), h("div", { class: "row" }, fresh, batch)), bar, trouble, place);

  function show() {
    place.setAttribute("aria-busy", "false");
    if (!rows.length) {
      put(place, Object.keys(query).length
        ? emptyState("No run matches", cursor ? "None of the runs looked at so far." : "Loosen a filter, or look at all runs.", more(), h("a", { class: "button", href: href("/runs") }, "All runs"))
        : emptyState("No runs yet", "Trigger a published workflow, and its run shows here at once.", h("a", { class: "button", href: href("/definitions") }, "To the definitions")));
      return;
    }
    list.update(rows);
    if (list.parentNode !== place) put(place, list);
    place.querySelector(".more-runs")?.remove();
    if (cursor) place.append(h("div", { class: "row more-runs" }, more(), h("span", { class: "small faint" }, `${rows.length} shown`)));
  }

  function more() {
    return cursor && button("Load more", { onclick: async (event) => {
      event.target.disabled = true;
      try {
        const answer = await api.get("/api/workflows/runs", { query: { ...query, limit: PAGE, cursor }, signal: ctx.signal });
        const known = new Set(rows.map((run) => run.run_id));
        rows = [...rows, ...answer.data.filter((run) => !known.has(run.run_id))];
        cursor = answer.next_cursor;
        show();
      } catch (error) {
        if (error.name !== "AbortError") put(trouble, errorNotice(error));
        event.target.disabled = false;
      }
    } });
  }

  async function look(signal) {
    const asked = query;
    const limit = Math.min(MOST, Math.max(PAGE, rows.length));
    const answer = await api.get("/api/workflows/runs", { query: { ...asked, limit }, signal });
    if (asked !== query) return "changed";
    const before = rows.map(version).join();
    // Further pages stay below; what has left the filter within the part read anew goes.
    const last = answer.data.at(-1);
    const known = new Set(answer.data.map((run) => run.run_id));
    const below = answer.next_cursor && last && rows.length > answer.data.length
      ? rows.filter((run) => run.created_at <= last.created_at && !known.has(run.run_id)) : [];
    rows = [...answer.data, ...below];
    if (!below.length) cursor = answer.next_cursor;
    put(trouble);
    show();
    put(fresh, "Live");
    return rows.map(version).join() === before ? "quiet" : "changed";
  }

  function begin(next, left) {
    query = filtersOf(next);
    const kept = left && JSON.stringify(left.query) === JSON.stringify(query) ? left : null;
    bar.show(query);
    batch.href = href("/batches/new", query);
    looks?.stop();
    rows = kept?.rows ?? [];
    cursor = kept?.cursor ?? null;
    if (rows.length) show();
    else place.setAttribute("aria-busy", "true");
    looks = poll(look, {
      fastest: FASTEST_MS, slowest: SLOWEST_MS,
      onError: (error) => {
        put(fresh);
        put(trouble, errorNotice(error, undefined, { again: true }));
        if (!rows.length) put(place);
      },
    });
  }

  // As in many lists: a slash leads to the search.
  const unlisten = on(document, "keydown", (event) => {
    if (event.key !== "/" || event.ctrlKey || event.metaKey || event.target.closest("input, textarea, select, dialog")) return;
    event.preventDefault();
    bar.querySelector("input[type=search]").focus();
  });
  begin(ctx.query, ctx.kept);
  // Most who come here go on to a run: its scripts are there by then.
  setTimeout(() => import("./run.js").catch(() => {}), 1500);
  knownWorkflows(ctx.signal).then((slugs) => bar.workflows(slugs), () => {});
  return {
    element,
    keep: () => ({ query, rows, cursor }),
    dispose: () => {
      looks.stop();
      unlisten();
    },
    update: (next) => {
      if (JSON.stringify(filtersOf(next.query)) !== JSON.stringify(query)) begin(next.query);
    },
  };
}

async function knownWorkflows(signal) {
  const answer = await api.get("/api/workflow-definitions", { query: { limit: MOST }, signal });
  return [...new Set(answer.data.map((card) => card.family_slug))].sort();
}

const version = (run) => `${run.run_id}:${run.db_record_version}:${run.status}:${Boolean(run.stalled)}`;
const same = (one, other) => version(one) === version(other);

const COLUMNS = [
  { title: "Status", class: "c-status", cell: (run) => (run.stalled ? statusBadge("stalled") : statusBadge(run.status, run.status === "continued_as_new" ? "Continued" : undefined)) },
  {
    title: "Workflow", class: "c-workflow",
    cell: (run) => h("div", { class: "two-lines" },
      h("div", { class: "row" }, h("a", { class: "strong cut", href: href(`/runs/${run.run_id}`), tabindex: -1 }, run.workflow_type), h("span", { class: "faint small" }, `v${run.definition_version}`),
        run.kind !== "workflow" && h("span", { class: "chip" }, run.kind)),
      h("div", { class: "row small" }, h("code", { class: "faint cut run-id", title: run.run_id }, run.run_id), copyButton(run.run_id, "Copy the run id"))),
  },
  {
    title: "Subject", class: "c-subject",
    cell: (run) => h("div", { class: "two-lines" },
      h("div", { class: "cut" }, run.subject_id ? `${run.subject_type} ${run.subject_id}` : h("span", { class: "faint" }, "–")),
      h("div", { class: "row labels" }, run.correlation_labels.slice(0, 2).map((label) => h("a", { class: "chip", href: href("/runs", { [`label.${label.key}`]: label.id }), title: `Runs with ${label.key} ${label.id}` }, `${label.key} ${label.id}`)))),
  },
  { title: "Started", class: "c-started", cell: (run) => ago(run.started_at ?? run.created_at) },
  {
    title: "Duration", class: "c-duration num",
    cell: (run) => live(() => (terminal(run.status) ? between(run.started_at, run.finished_at) : between(run.started_at, null)), { class: "nowrap" }),
  },
  {
    title: "Waits for, or why it ended", class: "c-why",
    cell: (run) => {
      const words = run.stalled ? run.stalled.reason : run.error ? `${run.error.code}: ${run.error.message}` : run.reason || waitsFor(run.waiting_on) || atWork(run);
      return h("div", { class: "clamp break muted", title: words }, words, run.waiting_on?.deadline_at && !terminal(run.status) && !run.stalled
        ? [" ", h("span", { class: "faint" }, "· "), ago(run.waiting_on.deadline_at)] : null);
    },
  },
];

const atWork = (run) => (run.status === "running" && run.current_steps.length ? `at work: ${run.current_steps.slice(0, 3).join(", ")}` : "");

function placeholder() {
  return h("div", { class: "table-box runs-waiting", "aria-hidden": "true" }, Array.from({ length: 8 }, () => h("div", { class: "skeleton" })));
}
