// API keys: who may do what. A key shows once, when it is issued.

import { h } from "../dom.js";
import { api } from "../api.js";
import { dateTime, relative } from "../format.js";
import { button, copyButton } from "../ui/buttons.js";
import { dialog, field } from "../ui/dialog.js";
import { statusBadge } from "../ui/status.js";
import { table } from "../ui/table.js";
import { area, names, readAll } from "./area.js";

const ROOT = "/api/admin/api-keys";

const ROLES = [
  ["viewer", "Viewer: reads definitions and runs"],
  ["operator", "Operator: starts and steers runs, publishes events"],
  ["author", "Author: writes definitions, starts runs"],
  ["worker", "Worker: takes bridge tasks"],
  ["admin", "Administrator: everything"],
];

export function keysArea(signal) {
  return area({
    title: "API keys", what: "the API keys", signal, words: "What is stored is a hash: a key shows once, when it is issued. A revoked one stops working within a minute.",
    action: ["New key", issue],
    load: async (reload) => {
      const list = table({ label: "API keys", key: (one) => one.id, columns: columns(reload) });
      list.update((await readAll(ROOT, { signal })).sort((a, b) => String(b.created_at).localeCompare(String(a.created_at))));
      return [list];
    },
  });
}

function columns(reload) {
  const moment = (when, none) => (when ? h("span", { class: "muted", title: dateTime(when) },
    relative(when),
  ) : h("span", { class: "faint" }, none));
  return [
    {
      title: "Name",
      cell: (one) => h("div", { class: "two-lines" },
        h("span", { class: "strong cut" }, one.name),
        h("code", { class: "muted small cut" }, one.id),
      ),
    },
    { title: "State", cell: state },
    {
      title: "May",
      cell: (one) => h("div", { class: "scopes" }, [...one.roles, ...one.scopes].map((name) => h("code", { class: "chip" }, name))),
    },
    { title: "Speaks for", cell: (one) => one.user || h("span", { class: "faint" }, "Nobody") },
    { title: "Last used", class: "nowrap", cell: (one) => moment(one.last_used_at, "Never") },
    { title: "Expires", class: "nowrap", cell: (one) => moment(one.expires_at, "Never") },
    {
      title: "",
      class: "num",
      cell: (one) => !one.revoked_at && button("Revoke", { kind: "danger", onclick: async () => (await revoke(one)) && reload() }),
    },
  ];
}

function state(one) {
  if (one.revoked_at) return statusBadge("terminated", "Revoked");
  if (one.expires_at && Date.parse(one.expires_at) < Date.now()) return statusBadge("timed_out", "Expired");
  return statusBadge("published", "Active");
}

async function issue() {
  const roles = ROLES.map(([id, label]) => field({ name: `role.${id}`, label, kind: "checkbox" }));
  const answer = await dialog({
    title: "New API key", action: "Issue the key",
    fields: [
      field({ name: "name", label: "Name", required: true, placeholder: "dashboard" }), ...roles,
      field({
        name: "other_roles",
        label: "Other roles",
        placeholder: "finance_manager",
        hint: "Plain names for approval audiences, separated by commas",
      }),
      field({
        name: "scopes",
        label: "Single scopes",
        placeholder: "workflow:read, workflow_run:write",
        hint: "They add to those of the roles",
      }),
      field({ name: "user", label: "Speaks for", placeholder: "cfo@example.com", hint: "The person, in approval audiences" }),
      field({ name: "environments_read", label: "Reads environments", value: "*" }), field({
        name: "environments_write",
        label: "Changes environments",
        value: "*",
      }),
      field({ name: "default_environment", label: "Default environment", value: "default", required: true }),
      field({ name: "expires_at", label: "Expires", type: "datetime-local", hint: "In the time of this machine; empty: never" }),
    ],
    submit: (values) => api.post(ROOT, bodyOf(values)),
  });
  if (!answer) return false;
  await showOnce(answer.data);
  return true;
}

function bodyOf(values) {
  const chosen = ROLES.map(([id]) => id).filter((id) => values[`role.${id}`]);
  return {
    name: values.name, roles: [...chosen, ...names(values.other_roles)], scopes: names(values.scopes), user: values.user,
    environments_read: names(values.environments_read), environments_write: names(values.environments_write), default_environment: values.default_environment,
    ...(values.expires_at && { expires_at: new Date(values.expires_at).toISOString() }),
  };
}

/** The only time that anybody sees the key. */
function showOnce({ key }) {
  return dialog({
    title: "The new key", action: "I have kept it",
    body: [
      h("p", null, "Copy it now: it is shown this once and cannot be read again."),
      h("div", { class: "secret" }, h("code", { "data-secret": true }, key), copyButton(key, "Copy the key")),
    ],
    submit: async () => true,
  });
}

function revoke(one) {
  return dialog({
    title: `Revoke ${one.name}?`, action: "Revoke", danger: true, body: [
      "Whoever uses it is refused within a minute. A revoked key never works again.",
    ],
    submit: () => api.delete(`${ROOT}/${encodeURIComponent(one.id)}`),
  });
}
