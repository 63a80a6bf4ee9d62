// A definition as text: JSON or YAML, to read, copy and save.

import { h, put } from "../dom.js";
import { button, copyButton } from "../ui/buttons.js";
import { documentOf } from "./document.js";
import { jsonEditor } from "./editor.js";
import { toJson, toYaml } from "./writing.js";

/** @param {object} definition as the API answers it @param {"json"|"yaml"} format @param {function(string): void} onFormat */
export function sourceView(definition, format, onFormat) {
  const body = h("div", { class: "source" });
  const choices = ["json", "yaml"].map((name) => h("button", {
    type: "button", "aria-pressed": String(name === format), onclick: () => { show(name); onFormat(name); },
  }, name.toUpperCase()));
  let text = "";

  function show(name) {
    choices.forEach((choice) => choice.setAttribute("aria-pressed", String(choice.textContent.toLowerCase() === name)));
    text = textOf(definition, name);
    put(body, name === "json"
      ? jsonEditor({ value: text, label: "Definition as JSON", readOnly: true })
      : h("pre", { class: "yaml", tabindex: 0 }, text));
    save.dataset.format = name;
  }
  const save = button("Save as file", { onclick: () => download(`${definition.family_slug}.${save.dataset.format}`, text) });
  show(format);
  return h("div", { class: "card source-card" },
    h("div", { class: "spread source-head" }, h("div", { class: "switch", role: "group", "aria-label": "Format" }, choices),
      h("div", { class: "row" }, copyButton(() => text, "Copy the text"), save)),
    body);
}

function textOf(definition, format) {
  const document = documentOf(definition);
  return format === "json" ? `${toJson(document)}\n` : `${toYaml({ type: "workflow_definition", definition: document })}\n`;
}

function download(name, text) {
  const url = URL.createObjectURL(new Blob([text], { type: "text/plain" }));
  h("a", { href: url, download: name }).click();
  URL.revokeObjectURL(url);
}
