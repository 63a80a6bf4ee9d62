// A modal dialog with a form. What it sends may be refused: the refusal stands in it, beside the field it is about.

import { h, put } from "../dom.js";
import { ApiError } from "../api.js";
import { inexactNumber, inexactWords, parseJson } from "../exact.js";
import { button, iconButton } from "./buttons.js";
import { faults, notice } from "./notice.js";

let serial = 0;

/**
 * One labelled field. The result has `.control` (the input) and `.value()`.
 * @param {{name: string, label: string, kind?: "text"|"password"|"number"|"textarea"|"json"|"select"|"checkbox",
 *   value?: *, hint?: string, placeholder?: string, required?: boolean, options?: Array<[string, string]>}} spec
 */
export function field(spec) {
  const { name, label, kind = "text", value, hint, placeholder, required, options = [], ...rest } = spec;
  const id = `field-${(serial += 1)}`;
  const shared = { id, name, required, "aria-describedby": `${id}-note`, ...rest };
  const control = control_(kind, shared, { value, placeholder, options });
  const fault = h("div", { class: "fault", role: "alert", hidden: true });
  const note = h("div", { id: `${id}-note` }, hint && h("div", { class: "hint" }, hint), fault);
  const element = kind === "checkbox"
    ? h("div", { class: "field" }, h("label", { class: "check", for: id }, control, h("span", null, label)), note)
    : h("div", { class: "field" }, h("label", { for: id }, label), control, note);
  return Object.assign(element, {
    control, fieldName: name,
    value: () => readControl(kind, control, label),
    fail(message) {
      fault.textContent = message ?? "";
      fault.hidden = !message;
      control.setAttribute("aria-invalid", String(Boolean(message)));
    },
  });
}

function control_(kind, shared, { value, placeholder, options }) {
  const base = { ...shared, placeholder, autocomplete: "off" };
  if (kind === "checkbox") return h("input", { ...shared, type: "checkbox", checked: Boolean(value) });
  if (kind === "select") {
    const made = h("select", { ...shared, class: "select" }, options.map(([key, text]) => h("option", { value: key }, text)));
    made.value = value ?? options[0]?.[0] ?? "";
    return made;
  }
  if (kind === "textarea" || kind === "json") {
    const made = h("textarea", { ...base, class: `textarea ${kind === "json" ? "mono" : ""}`, spellcheck: kind === "json" ? "false" : null });
    made.value = kind === "json" && value !== undefined ? JSON.stringify(value, null, 2) : value ?? "";
    return made;
  }
  return h("input", { ...base, class: "input", type: kind, value: value ?? "" });
}

/** A fault that is found before anything is sent. */
export class FieldError extends Error {}

function readControl(kind, control, label) {
  if (kind === "checkbox") return control.checked;
  if (kind === "number") return control.value === "" ? undefined : Number(control.value);
  if (kind !== "json") return control.value.trim();
  if (!control.value.trim()) return undefined;
  const inexact = inexactNumber(control.value);
  if (inexact) throw new FieldError(inexactWords(inexact.number));
  try {
    return parseJson(control.value);
  } catch (error) {
    throw new FieldError(`${label} is not JSON: ${error.message}`);
  }
}

/**
 * Opens a dialog and resolves with what `submit` answered, or null when it was closed.
 * @param {{title: string, body?: Array, fields?: Array, action: string, danger?: boolean, wide?: boolean,
 *   submit: function(Object<string, *>): Promise<*>, ready?: function(Object<string, *>): boolean}} spec
 *   `ready` decides whether the action may be pressed. `submit` may be called again after a refusal.
 */
export function dialog(spec) {
  const { title, body = [], fields = [], action, danger = false, wide = false, submit, ready } = spec;
  const id = `dialog-${(serial += 1)}`;
  const trouble = h("div", { "aria-live": "assertive" });
  const send = button(action, { type: "submit", kind: danger ? "danger primary" : "primary" });
  return new Promise((resolve) => {
    let result = null;
    const cancel = () => element.close();
    const form = h("form", { class: "dialog-form", novalidate: true, onsubmit: submitted, oninput: check },
      h("div", { class: "dialog-head" }, h("h2", { id }, title), iconButton("cross", "Close", { onclick: cancel })),
      h("div", { class: "dialog-body" }, body, fields, trouble),
      h("div", { class: "dialog-foot" }, button("Cancel", { onclick: cancel }), send));
    const element = h("dialog", { class: `dialog ${wide ? "wide" : ""}`, "aria-labelledby": id }, form);

    function check() {
      if (ready) send.disabled = !ready(peek(fields));
    }
    async function submitted(event) {
      event.preventDefault();
      if (send.disabled) return;
      put(trouble);
      fields.forEach((one) => one.fail(""));
      const values = gather(fields, trouble);
      if (!values) return;
      send.disabled = true;
      send.classList.add("busy");
      try {
        result = (await submit(values)) ?? true;
        element.close();
      } catch (error) {
        show(error, fields, trouble);
      } finally {
        send.disabled = false;
        send.classList.remove("busy");
        check();
      }
    }
    element.addEventListener("close", () => {
      element.remove();
      resolve(result);
    });
    document.body.append(element);
    check();
    element.showModal();
    (fields[0]?.control ?? send).focus();
  });
}

function peek(fields) {
  return Object.fromEntries(fields.map((one) => {
    try {
      return [one.fieldName, one.value()];
    } catch {
      return [one.fieldName, undefined];
    }
  }));
}

function gather(fields, trouble) {
  const values = {};
  for (const one of fields) {
    try {
      values[one.fieldName] = one.value();
      if (one.control.required && (values[one.fieldName] === "" || values[one.fieldName] === undefined)) throw new FieldError("Please fill this in.");
    } catch (error) {
      if (!(error instanceof FieldError)) throw error;
      one.fail(error.message);
      one.control.focus();
      return null;
    }
  }
  put(trouble);
  return values;
}

function show(error, fields, trouble) {
  const items = error instanceof ApiError ? error.errors : [];
  for (const item of items) fields.find((one) => item.field && item.field.split(".")[0] === one.fieldName)?.fail(`${item.code}: ${item.message}`);
  put(trouble, notice("failed", String(error?.message ?? error), error instanceof ApiError && faults(error)));
}
