// Connections: where actions get their addresses and secrets. Secrets go in and never come out.

import { h } from "../dom.js";
import { api } from "../api.js";
import { relative } from "../format.js";
import { button, menu } from "../ui/buttons.js";
import { dialog, field } from "../ui/dialog.js";
import { emptyState } from "../ui/notice.js";
import { statusBadge } from "../ui/status.js";
import { table } from "../ui/table.js";
import { toast, toastError } from "../ui/toast.js";
import { area, names, readAll } from "./area.js";

const ROOT = "/api/connections";
const at = (one) => `${ROOT}/${encodeURIComponent(one.slug)}`;

export function connectionsArea(signal) {
  let types = [];
  return area({
    title: "Connections", what: "the connections", signal,
    words: "Where actions get their addresses and secrets from. A secret is stored encrypted and never shown again.",
    action: ["New connection", () => create(types)],
    load: async (reload) => {
      const [connections, known] = await Promise.all([readAll(ROOT, { signal }), api.get(`${ROOT}/types`, { signal })]);
      types = known.data;
      const list = table({ label: "Connections", key: (one) => one.id, columns: columns(() => types, reload) });
      list.update(connections);
      return [connections.length ? list : emptyState("No connection yet", "Actions that call other services name a connection.")];
    },
  });
}

function columns(types, reload) {
  return [
    {
      title: "Name",
      cell: (one) => h("div", { class: "two-lines" },
        h("code", { class: "strong cut" }, one.slug),
        h("span", { class: "muted small cut" }, one.title),
      ),
    },
    { title: "Type", cell: (one) => types().find((type) => type.type === one.type)?.title ?? one.type },
    { title: "State", cell: (one) => (one.active ? statusBadge("published", "Active") : statusBadge("archived", "Off")) },
    {
      title: "Secrets",
      cell: (one) => (one.secrets.length ? h("span", { class: "row wrap" },
        one.secrets.map((name) => h("code", { class: "chip" }, `${name} ••••`)),
      ) : h("span", { class: "faint" }, "None")),
    },
    { title: "Environments", cell: (one) => one.environments.map((key) => (key === "*" ? "all" : key)).join(", ") },
    { title: "Changed", class: "nowrap", cell: (one) => h("span", { class: "muted" }, relative(one.updated_at ?? one.created_at)) },
    {
      title: "", class: "num",
      cell: (one) => {
        const type = types().find((known) => known.type === one.type);
        return h("div", { class: "row end" },
          button("Test", { onclick: () => test(one), why: type && !type.testable && "There is no harmless call for this type" }),
          menu("", [
            { label: "Edit…", name: "edit", onclick: async () => (await form(one, type)) && reload() },
            { label: one.active ? "Switch off" : "Switch on", name: "switch", onclick: () => toggle(one, reload) },
            { label: "Delete…", name: "delete", danger: true, onclick: async () => (await remove(one)) && reload() },
          ], { "aria-label": `More for ${one.slug}` }));
      },
    },
  ];
}

async function create(types) {
  const chosen = await dialog({
    title: "New connection", action: "Go on",
    fields: [field({
      name: "type",
      label: "What does it connect to?",
      kind: "select",
      options: types.map((type) => [type.type, type.title]),
    })],
    submit: async (values) => values,
  });
  return chosen && form(null, types.find((type) => type.type === chosen.type));
}

/** Settings and secrets of the type; for a type that takes any, as JSON. */
function form(one, type) {
  const setting = (info) => field({
    name: `settings.${info.name}`,
    label: info.name,
    value: one?.settings[info.name],
    hint: info.description,
    required: info.required,
  });
  const secret = (info) => {
    const stored = one?.secrets.includes(info.name);
    return field({
      name: `secrets.${info.name}`,
      label: info.name,
      kind: "password",
      hint: [info.description, stored && "Stored; leave empty to keep it."].filter(Boolean).join(" "),
      required: info.required && !stored,
      autocomplete: "new-password",
    });
  };
  const fields = [
    !one && field({ name: "slug", label: "Name", required: true, placeholder: `${type.type}-live`, hint: "What steps call it" }),
    field({ name: "title", label: "Title", value: one?.title }),
    ...(type?.settings ?? []).map(setting), ...(type?.secrets ?? []).map(secret),
    field({
      name: "environments",
      label: "Environments",
      value: (one?.environments ?? ["*"]).join(", "),
      hint: "Keys of environments whose runs may use it, separated by commas; * for all",
    }),
  ].filter(Boolean);
  return dialog({
    title: one ? `Connection ${one.slug}` : `New connection: ${type.title}`, fields, action: one ? "Save" : "Create",
    submit: (values) => {
      const body = {
        title: values.title,
        environments: names(values.environments),
        settings: picked(values, "settings."),
        secrets: picked(values, "secrets."),
      };
      return one ? api.patch(at(one), body) : api.post(ROOT, { ...body, slug: values.slug, type: type.type });
    },
  });
}

function picked(values, prefix) {
  return Object.fromEntries(Object.entries(values).filter(([name, value]) => name.startsWith(prefix) && value !== "").map(([name, value]) => [name.slice(prefix.length), value]));
}

async function test(one) {
  const news = toast("running", `Testing ${one.slug}…`);
  try {
    const { data } = await api.post(`${at(one)}:test`);
    news.update(
      data.ok ? "done" : "failed",
      data.ok ? `${one.slug} works` : `${one.slug} does not work`,
      data.ok ? `Answered after ${data.took_ms} ms` : `${data.code}: ${data.message}`,
    );
  } catch (error) {
    news.close();
    toastError(error, `${one.slug} could not be tested`);
  }
}

async function toggle(one, reload) {
  try {
    await api.patch(at(one), { active: !one.active });
    await reload();
  } catch (error) {
    toastError(error);
  }
}

function remove(one) {
  return dialog({
    title: `Delete ${one.slug}?`, body: ["Steps that name it fail from now on. Its secrets are gone."], action: "Delete", danger: true,
    submit: () => api.delete(at(one)),
  });
}
