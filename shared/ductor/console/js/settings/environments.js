// Environments: where workflows run, and what may change there.

import { h } from "../dom.js";
import { api } from "../api.js";
import { button } from "../ui/buttons.js";
import { dialog, field } from "../ui/dialog.js";
import { statusBadge } from "../ui/status.js";
import { table } from "../ui/table.js";
import { area, readAll } from "./area.js";

const ROOT = "/api/environments";

export function environmentsArea(signal) {
  return area({
    title: "Environments", what: "the environments", signal,
    words: "Where runs take place: their variables and connections, and which changes are allowed.",
    action: ["New environment", () => form(null)],
    load: async (reload) => {
      const list = table({ label: "Environments", key: (one) => one.key, columns: columns(reload) });
      list.update(await readAll(ROOT, { signal }));
      return [list];
    },
  });
}

function columns(reload) {
  return [
    {
      title: "Key",
      cell: (one) => h("div", { class: "two-lines" },
        h("code", { class: "strong" }, one.key),
        h("span", { class: "muted small cut" }, one.title || one.description),
      ),
    },
    { title: "State", cell: (one) => (one.active ? statusBadge("published", "Active") : statusBadge("archived", "Off")) },
    { title: "Changes", cell: (one) => changes(one) },
    { title: "Connection names", class: "num", cell: (one) => String(Object.keys(one.connections).length) },
    { title: "Variables", class: "num", cell: (one) => String(Object.keys(one.variables).length) },
    {
      title: "Release",
      cell: (one) => (one.release.required ? h("code", null,
        one.release.external_deployment_id || "none is live",
      ) : h("span", { class: "faint" }, "Any")),
    },
    { title: "", class: "num", cell: (one) => button("Edit", { onclick: async () => (await form(one)) && reload() }) },
  ];
}

function changes(one) {
  if (!one.mutable) return "Takes no version";
  if (one.require_promotion) return "By promotion only";
  return one.allow_direct_mutation ? "Drafts and publications" : "No direct changes";
}

function form(one) {
  const fields = [
    !one && field({
      name: "key",
      label: "Key",
      required: true,
      placeholder: "staging",
      hint: "Starts with a to z; a to z, 0 to 9, _ and -",
    }),
    field({ name: "title", label: "Title", value: one?.title }),
    field({ name: "description", label: "Description", kind: "textarea", value: one?.description }),
    field({ name: "active", label: "Active: runs may start", kind: "checkbox", value: one?.active ?? true }),
    field({ name: "mutable", label: "Takes new versions", kind: "checkbox", value: one?.mutable ?? true }),
    field({
      name: "allow_direct_mutation",
      label: "Drafts may be saved and published in it",
      kind: "checkbox",
      value: one?.allow_direct_mutation ?? true,
    }),
    field({
      name: "require_promotion",
      label: "Versions come into it by promotion only",
      kind: "checkbox",
      value: one?.require_promotion ?? false,
    }),
    field({
      name: "connections",
      label: "Connection names",
      kind: "json",
      rows: 3,
      value: one?.connections ?? {},
      hint: "Names that steps use, and the connection that each means: {\"mail\": \"smtp-live\"}",
    }),
    field({
      name: "release_required",
      label: "A trigger must name the live release",
      kind: "checkbox",
      value: one?.release.required ?? false,
    }),
    field({ name: "external_deployment_id", label: "Live release", value: one?.release.external_deployment_id }),
  ].filter(Boolean);
  return dialog({
    title: one ? `Environment ${one.key}` : "New environment", fields, action: one ? "Save" : "Create",
    submit: ({ release_required, external_deployment_id, connections = {}, ...rest }) => {
      const gone = Object.keys(one?.connections ?? {}).filter((name) => !(name in connections));
      const body = {
        ...rest,
        connections: { ...connections, ...Object.fromEntries(gone.map((name) => [name, null])) },
        release: { required: release_required, external_deployment_id },
      };
      return one ? api.patch(`${ROOT}/${encodeURIComponent(one.key)}`, body) : api.post(ROOT, body);
    },
  });
}
