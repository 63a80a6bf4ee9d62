// One version (or draft) of a workflow: its graph, its text, and what it changed.

import { h, put } from "../dom.js";
import { api } from "../api.js";
import { href, navigate, setQuery } from "../router.js";
import { button, menu } from "../ui/buttons.js";
import { statusBadge } from "../ui/status.js";
import { tabs } from "../ui/tabs.js";
import { graphOf } from "../graph/scopes.js";
import { graphView } from "../graph/view.js";
import { archive, duplicate, edit, olderNotice, promote, removeDraft } from "../definitions/actions.js";
import { changesView } from "../definitions/changes_view.js";
import { byFamily, documentOf, statusOf, versionName } from "../definitions/document.js";
import { overview } from "../definitions/overview.js";
import { sourceView } from "../definitions/source_view.js";
import { stepPanel } from "../definitions/step_panel.js";

const TABS = [["graph", "Graph"], ["source", "Source"], ["changes", "Changes"]];

export async function render(ctx) {
  const { data: definition } = await api.get(`/api/workflow-definitions/${encodeURIComponent(ctx.params.id)}`, { signal: ctx.signal });
  const family = await familyOf(definition, ctx.signal);
  const name = definition.title || definition.family_slug;
  ctx.title(`${name} ${versionName(definition)}`);
  let query = ctx.query;
  let shown = "";
  const body = h("div", { id: "tab-panel", role: "tabpanel" });
  const bar = tabs(TABS, tabOf(query), (tab) => setQuery({ tab: tab === "graph" ? null : tab }));
  const graph = graphTab(definition, ctx, (step) => setQuery({ step }));

  function show() {
    const tab = tabOf(query);
    bar.select(tab);
    if (tab === "graph") graph.choose(query.step ?? null);
    if (tab === shown) return;
    shown = tab;
    if (tab === "graph") put(body, graph.element);
    else if (tab === "source") put(
      body,
      sourceView(definition, query.format === "yaml" ? "yaml" : "json", (format) => setQuery({ format })),
    );
    else put(
      body,
      changesView(
        definition,
        [family.draft, ...family.versions].filter(Boolean),
        { against: query.against, onAgainst: (against) => setQuery({ against }), signal: ctx.signal },
      ),
    );
  }
  show();
  return {
    element: h("div", { class: "page" }, head(definition, family, name), olderNotice(definition, family.newest), bar, body),
    update(next) {
      query = next.query;
      show();
    },
  };
}

const tabOf = (query) => (TABS.some(([id]) => id === query.tab) ? query.tab : "graph");

async function familyOf(definition, signal) {
  const cards = [];
  let cursor = null;
  do {
    const page = await api.get("/api/workflow-definitions", { query: { family_slug: definition.family_slug, limit: 200, cursor }, signal });
    cards.push(...page.data);
    cursor = page.next_cursor;
  } while (cursor && cards.length < 2000);
  return byFamily(cards).find((one) => one.slug === definition.family_slug) ?? byFamily([definition])[0];
}

function head(definition, family, name) {
  const status = statusOf(definition);
  const others = [family.draft, ...family.versions].filter(Boolean);
  const versions = h("select", { class: "select", "aria-label": "Version", onchange: () => navigate(`/definitions/${versions.value}`) },
    others.map((card) => h("option", { value: card.id, selected: card.id === definition.id },
      `${versionName(card)}${statusOf(card) === "archived" ? " (archived)" : ""}${card.id === family.newest?.id ? " (newest)" : ""}`,
    )));
  return h("div", { class: "page-head" },
    h("div", { class: "title-block" },
      h("nav", { class: "crumbs", "aria-label": "Where" },
        h("a", { href: "#/definitions" }, "Definitions"),
        " / ",
        h("code", null, definition.family_slug),
      ),
      h("div", { class: "row wrap" }, h("h1", { class: "break" }, name), statusBadge(status))),
    h("div", { class: "row wrap" }, h("div", { class: "narrow" }, versions), actions(definition, family, status)));
}

function actions(definition, family, status) {
  const draft = status === "draft";
  const entries = [
    { label: "Duplicate…", name: "duplicate", onclick: () => duplicate(definition) },
    !draft && {
      label: "Promote…",
      name: "promote",
      onclick: () => promote(definition),
      why: status === "archived" && "An archived version stays where it is",
    },
    !draft && {
      label: "Archive…",
      name: "archive",
      danger: true,
      why: status === "archived" && "Archived already",
      onclick: async () => (await archive(definition)) && location.reload(),
    },
    draft && {
      label: "Delete the draft…",
      name: "delete",
      danger: true,
      onclick: async () => (await removeDraft(definition)) && navigate("/definitions"),
    },
  ];
  return [
    h("a", { class: "button", href: href("/runs", { workflow_type: definition.family_slug }) }, "Runs"),
    button(family.draft ? "Edit draft" : "New draft", { onclick: () => edit(definition, family.draft) }),
    status === "published" && h("a", { class: "button primary", href: href(`/definitions/${definition.id}/trigger`) }, "Start a run"),
    menu("", entries.filter(Boolean), { "aria-label": "More actions" }),
  ];
}

function graphTab(definition, ctx, onStep) {
  const document = documentOf(definition);
  const about = overview(document.steps ? { ...definition, ...document } : definition, ctx.signal);
  const side = h("aside", { class: "graph-side" }, about);
  const graph = graphView({
    ...graphOf(document),
    selected: ctx.query.step ?? null,
    onSelect: onStep,
    label: `Graph of ${definition.family_slug}`,
  });
  let chosen;
  function choose(step) {
    if (step === chosen) return;
    chosen = step;
    put(side, (step && stepPanel(document, step, { onSelect: onStep })) || about);
    graph.update({ selected: step });
  }
  return { element: h("div", { class: "graph-split" }, h("div", { class: "card graph-card-box" }, graph), side), choose };
}
