// The list of workflow families.

import { h, put } from "../dom.js";
import { api } from "../api.js";
import { plural, relative, dateTime } from "../format.js";
import { href, navigate, setQuery } from "../router.js";
import { button } from "../ui/buttons.js";
import { emptyState, errorNotice } from "../ui/notice.js";
import { statusBadge } from "../ui/status.js";
import { table } from "../ui/table.js";
import { byFamily, statusOf } from "../definitions/document.js";

const PAGE = 200;
const STATUSES = [
  ["", "Any state"],
  ["published", "With a published version"],
  ["draft", "With a draft"],
  ["archived", "With archived versions"],
];

/** Families by what they have; the API's filter would hide their other rows, and so what else they have. */
const HAS = {
  published: (family) => family.newest !== null,
  draft: (family) => family.draft !== null,
  archived: (family) => family.versions.some((card) => statusOf(card) === "archived"),
};

export function render(ctx) {
  ctx.title("Definitions");
  let query = ctx.query;
  let cards = [];
  let cursor = null;
  let turn = 0;
  const foot = h("div", { class: "row" });
  const note = h("div", null);
  const list = table({
    label: "Definitions", key: (family) => family.slug, onOpen: (family) => navigate(`/definitions/${family.card.id}`), columns: columns(),
  });
  const search = h(
    "input",
    {
      class: "input",
      type: "search",
      placeholder: "Search title or slug",
      "aria-label": "Search",
      value: query.q ?? "",
      oninput: later(() => setQuery({ q: search.value })),
    },
  );
  const tags = h(
    "input",
    {
      class: "input",
      placeholder: "Tag",
      "aria-label": "Tag",
      value: query.tags ?? "",
      oninput: later(() => setQuery({ tags: tags.value })),
    },
  );
  const status = h("select", { class: "select", "aria-label": "State", onchange: () => setQuery({ status: status.value }) },
    STATUSES.map(([value, text]) => h("option", { value, selected: value === (query.status ?? "") }, text)));

  async function load(more = false) {
    const mine = (turn += 1);
    try {
      const answer = await api.get("/api/workflow-definitions", {
        query: { q: query.q, tags: query.tags, limit: PAGE, cursor: more ? cursor : null }, signal: ctx.signal,
      });
      if (mine !== turn) return;
      cards = more ? [...cards, ...answer.data] : answer.data;
      cursor = answer.next_cursor;
      show();
    } catch (error) {
      if (error.name !== "AbortError") put(note, errorNotice(error));
    }
  }
  function show() {
    const families = byFamily(cards).filter(HAS[query.status] ?? (() => true)).sort((a, b) => String(b.updated).localeCompare(String(a.updated)));
    list.update(families);
    list.hidden = !families.length;
    const filtered = Boolean(query.q || query.tags || query.status);
    put(note, !families.length && (filtered
      ? emptyState(
        "Nothing matches",
        "No definition fits these filters.",
        button("Clear the filters", { onclick: () => navigate("/definitions") }),
      )
      : emptyState("No workflows yet", "A definition says what a workflow does: steps, and the edges between them.", newLink())));
    put(
      foot,
      families.length > 0 && h("span", { class: "small muted" }, plural(families.length, "workflow")),
      cursor && button("More", { onclick: () => load(true) }),
    );
  }
  list.hidden = true;
  load();
  return {
    element: h("div", { class: "page" },
      h("div", { class: "page-head" }, h("h1", null, "Definitions"), newLink()),
      h("div", { class: "filters" }, search, status, tags), note, list, foot),
    update(next) {
      query = next.query;
      if (document.activeElement !== search) search.value = query.q ?? "";
      if (document.activeElement !== tags) tags.value = query.tags ?? "";
      status.value = query.status ?? "";
      load();
    },
  };
}

const newLink = () => h("a", { class: "button primary", href: "#/definitions/new" }, "New definition");

function later(act, ms = 250) {
  let timer = null;
  return () => {
    clearTimeout(timer);
    timer = setTimeout(act, ms);
  };
}

function columns() {
  return [
    {
      title: "Workflow",
      cell: ({ slug, card }) => h("div", { class: "two-lines" },
        h("a", { class: "strong cut", href: href(`/definitions/${card.id}`) }, card.title || slug),
        h("code", { class: "muted cut" }, slug),
      ),
    },
    {
      title: "Newest version",
      cell: ({ newest, versions }) => (newest ? statusBadge("published", `v${newest.version}`)
        : versions.length ? statusBadge(
          statusOf(versions[0]),
          `v${versions[0].version} archived`,
        ) : h("span", { class: "faint" }, "Not published")),
    },
    {
      title: "Draft",
      cell: ({ draft }) => (draft ? h("a", { class: "chip", href: href(`/definitions/${draft.id}/edit`) },
        `Draft, revision ${draft.draft_revision}`,
      ) : h("span", { class: "faint" }, "None")),
    },
    {
      title: "Tags",
      class: "wide-only",
      cell: ({ card }) => h("div", { class: "row wrap" }, card.tags.map((tag) => h("span", { class: "chip" }, tag))),
    },
    { title: "Environment", class: "wide-only", cell: ({ card }) => h("code", { class: "muted" }, card.environment) },
    {
      title: "Changed",
      class: "nowrap",
      cell: ({ updated }) => h("span", { class: "muted", title: dateTime(updated) }, relative(updated)),
    },
    {
      title: "", class: "num",
      cell: ({ newest, slug }) => h("div", { class: "row end" }, h(
        "a",
        { class: "button quiet", href: href("/runs", { workflow_type: slug }) },
        "Runs",
      ),
        newest && h("a", { class: "button", href: href(`/definitions/${newest.id}/trigger`) }, "Start")),
    },
  ];
}
