// Starting a run of a published version by hand.

import { h, put } from "../dom.js";
import { api, newRequestId } from "../api.js";
import { navigate } from "../router.js";
import { button } from "../ui/buttons.js";
import { field, FieldError } from "../ui/dialog.js";
import { errorNotice, notice } from "../ui/notice.js";
import { jsonView } from "../ui/json.js";
import { statusBadge } from "../ui/status.js";
import { statusOf, versionName } from "../definitions/document.js";
import { exampleOf } from "../definitions/example_input.js";

export async function render(ctx) {
  const { data: definition } = await api.get(`/api/workflow-definitions/${encodeURIComponent(ctx.params.id)}`, { signal: ctx.signal });
  ctx.title(`Start ${definition.family_slug}`);
  const fields = fieldsOf(definition);
  const trouble = h("div", { "aria-live": "assertive" });
  const result = h("div", { "aria-live": "polite" });
  const why = statusOf(definition) === "published" ? undefined : "Only a published version can be started";
  const send = button("Start the run", { type: "submit", kind: "primary", why });

  async function submit(event) {
    event.preventDefault();
    put(trouble);
    put(result);
    if (why) return;
    const body = bodyOf(fields, trouble);
    if (!body) return;
    send.disabled = true;
    send.classList.add("busy");
    try {
      const answer = await api.post(`/api/v2/workflow-definitions/${definition.id}:trigger`, body);
      if (body.wait_for_checkpoint) put(result, checkpointAnswer(answer));
      else navigate(`/runs/${answer.run_id}`);
    } catch (error) {
      put(trouble, errorNotice(error, "The run was not started"));
    } finally {
      send.disabled = false;
      send.classList.remove("busy");
    }
  }
  return {
    element: h("div", { class: "page" },
      h("div", { class: "title-block" },
        h("nav", { class: "crumbs", "aria-label": "Where" },
          h("a", { href: "#/definitions" }, "Definitions"),
          " / ",
          h("a", { href: `#/definitions/${definition.id}` }, h("code", null, definition.family_slug), ` ${versionName(definition)}`),
          " / Start",
        ),
        h("h1", { class: "break" }, `Start ${definition.title || definition.family_slug}`)),
      why && notice("waiting", why),
      h("form", { class: "form-split", onsubmit: submit, novalidate: true },
        h("div", { class: "card pad stack" },
          fields.input,
          definition.input_schema && h("details", null,
            h("summary", { class: "small muted" }, "Input schema"),
            jsonView(definition.input_schema, { open: 3 }),
          ),
        ),
        h("div", { class: "card pad stack" },
          h("div", { class: "two" }, fields.subject_type, fields.subject_id),
          fields.labels,
          fields.variables,
          fields.idempotency_key,
          !fields.wait.control.disabled && [fields.wait, fields.timeout],
        ),
        h("div", { class: "stack span" },
          trouble,
          h("div", { class: "row" }, send, h("a", { class: "button", href: `#/definitions/${definition.id}` }, "Cancel")),
          result,
        ))),
  };
}

function fieldsOf(definition) {
  const overridable = Object.entries(definition.variables ?? {}).filter(([, value]) => value && typeof value === "object" && value.overridable).map(([name]) => name);
  const checkpoint = (definition.checkpoints ?? []).some((one) => one.response);
  return {
    input: field({
      name: "input",
      label: "Input",
      kind: "json",
      value: exampleOf(definition.input_schema),
      rows: 14,
      hint: "JSON; steps read it as TRIGGER.payload",
    }),
    subject_type: field({ name: "subject_type", label: "Subject type", placeholder: "order" }),
    subject_id: field({ name: "subject_id", label: "Subject id", placeholder: "42" }),
    labels: field({
      name: "correlation_labels",
      label: "Labels",
      placeholder: "customer=42, region=eu",
      hint: "key=id, separated by commas; the list of runs finds them",
    }),
    variables: field({
      name: "variables",
      label: "Variables",
      kind: "json",
      rows: 3,
      placeholder: "{}",
      hint: overridable.length ? `May be set: ${overridable.join(", ")}` : "This definition lets none be set",
    }),
    idempotency_key: field({
      name: "idempotency_key",
      label: "Idempotency key",
      value: newRequestId(),
      hint: "The same key with the same body always gets the same run",
    }),
    wait: field({
      name: "wait_for_checkpoint",
      label: "Wait for the checkpoint's answer",
      kind: "checkbox",
      disabled: checkpoint ? null : true,
      hint: "Answers with what the response checkpoint gives",
    }),
    timeout: field({
      name: "checkpoint_timeout_seconds",
      label: "Wait at most (seconds)",
      kind: "number",
      min: 0,
      step: "any",
      placeholder: "as the server allows",
    }),
  };
}

function bodyOf(fields, trouble) {
  try {
    Object.values(fields).forEach((one) => one.fail(""));
    const text = (name) => fields[name].value() || undefined;
    const body = {
      input: fields.input.value() ?? {}, subject_type: text("subject_type"), subject_id: text("subject_id"),
      correlation_labels: labelsOf(fields.labels), variables: fields.variables.value(), idempotency_key: text("idempotency_key"),
    };
    if (fields.wait.value()) Object.assign(body, { wait_for_checkpoint: true, checkpoint_timeout_seconds: fields.timeout.value() });
    return body;
  } catch (error) {
    if (!(error instanceof FieldError)) throw error;
    put(trouble, notice("failed", error.message));
    return null;
  }
}

function labelsOf(labels) {
  const parts = labels.value().split(",").map((part) => part.trim()).filter(Boolean);
  return parts.map((part) => {
    const at = part.indexOf("=");
    if (at < 1 || at === part.length - 1) {
      labels.fail(`${part} is not of the form key=id`);
      throw new FieldError("A label is written key=id.");
    }
    return { key: part.slice(0, at).trim(), id: part.slice(at + 1).trim() };
  });
}

function checkpointAnswer(answer) {
  const { metadata, ...rest } = answer;
  return h("div", { class: "card pad stack" },
    h("div", { class: "row wrap" }, statusBadge(answer.status), h("a", { href: `#/runs/${answer.run_id}` }, "Open the run")),
    jsonView(rest, { open: 3 }),
  );
}
