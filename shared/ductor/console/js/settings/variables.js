// Variables of an environment: plain values that runs read as VARS. Never secrets.

import { h } from "../dom.js";
import { api } from "../api.js";
import { button, iconButton } from "../ui/buttons.js";
import { dialog, field } from "../ui/dialog.js";
import { emptyState } from "../ui/notice.js";
import { table } from "../ui/table.js";
import { brief } from "../definitions/words.js";
import { area, readAll } from "./area.js";

const path = (name) => `/api/variables/${encodeURIComponent(name)}`;

export function variablesArea(signal) {
  let environment = "default";
  return area({
    title: "Variables", what: "the variables", signal,
    words: "Read as VARS.name; they overlay the defaults of a definition. Everybody who can read runs can read them: secrets belong into connections.",
    action: ["Set a variable", () => form(environment)],
    load: async (reload) => {
      const environments = await readAll("/api/environments", { signal });
      if (!environments.some((one) => one.key === environment)) environment = environments[0]?.key ?? "default";
      const select = h("select", {
        class: "select",
        "aria-label": "Environment",
        onchange: () => { environment = select.value; reload(); },
      },
        environments.map((one) => h("option", { value: one.key, selected: one.key === environment }, one.key)));
      const { data: variables } = await api.get("/api/variables", { query: { environment }, signal });
      const list = table({ label: "Variables", key: (one) => one.name, columns: columns(reload) });
      list.update(variables);
      return [
        h("div", { class: "narrow" }, select),
        variables.length ? list : emptyState("No variable", `The environment ${environment} sets none.`),
      ];
    },
  });
}

function columns(reload) {
  return [
    { title: "Name", cell: (one) => h("code", { class: "strong" }, one.name) },
    { title: "Value", cell: (one) => h("code", { class: "break" }, brief(one.value, 200)) },
    {
      title: "", class: "num",
      cell: (one) => h("div", { class: "row end" }, button("Edit", { onclick: async () => (await form(one.environment, one)) && reload() }),
        iconButton("cross", `Remove ${one.name}`, { onclick: async () => (await remove(one)) && reload() })),
    },
  ];
}

function form(environment, one) {
  const fields = [
    field({ name: "name", label: "Name", value: one?.name, required: true, readonly: one ? true : null }),
    field({
      name: "value",
      label: "Value",
      kind: "json",
      rows: 4,
      value: one?.value,
      required: true,
      hint: "Any JSON: a text stands in double quotes",
    }),
  ];
  return dialog({
    title: `Variable of ${environment}`,
    fields,
    action: "Save",
    submit: ({ name, value }) => api.put(path(name), { environment, value }),
  });
}

function remove(one) {
  return dialog({
    title: `Remove ${one.name}?`, body: ["Runs that are under way keep the value they began with."], action: "Remove", danger: true,
    submit: () => api.delete(path(one.name), { query: { environment: one.environment } }),
  });
}

