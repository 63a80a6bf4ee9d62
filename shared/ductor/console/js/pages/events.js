// Publishing an event, and the runs that events could not start.

import { h, put } from "../dom.js";
import { api, newRequestId } from "../api.js";
import { dateTime, plural, relative } from "../format.js";
import { href } from "../router.js";
import { button } from "../ui/buttons.js";
import { field, FieldError } from "../ui/dialog.js";
import { emptyState, errorNotice, notice } from "../ui/notice.js";
import { table } from "../ui/table.js";

export function render(ctx) {
  ctx.title("Events");
  const refused = refusedStarts(ctx.signal);
  refused.load();
  return {
    element: h("div", { class: "page" }, h("div", { class: "page-head" }, h("h1", null, "Events")),
      h("div", { class: "events-split" },
        publishForm(ctx.query, refused.load),
        h("section", { class: "stack" },
          h("h2", null, "Starts that were refused"),
          h("p", { class: "muted small" },
            "Runs that an event should have started in the last 30 days. Put the cause right, then publish with a new event id.",
          ),
          refused.element,
        ),
      )),
  };
}

function publishForm(query, onDone) {
  const fields = [
    field({ name: "event_name", label: "Event name", value: query.event_name, placeholder: "order.paid", required: true }),
    field({
      name: "correlation_key",
      label: "Correlation key",
      value: query.correlation_key,
      placeholder: "order-42",
      hint: "Waits for this name and key end; without a key the event ends none, but it can start runs",
    }),
    field({
      name: "event_id",
      label: "Event id",
      value: newRequestId(),
      required: true,
      hint: "The same id counts once a day: publish again with a new one",
    }),
    field({ name: "payload", label: "Payload", kind: "json", rows: 8, value: {} }),
  ];
  const trouble = h("div", { "aria-live": "assertive" });
  const result = h("div", { "aria-live": "polite" });
  const send = button("Publish", { type: "submit", kind: "primary" });

  async function submit(event) {
    event.preventDefault();
    put(trouble);
    const body = valuesOf(fields);
    if (!body) return;
    send.disabled = true;
    try {
      put(result, outcome(await api.post("/api/v2/workflow-events:publish", body)));
      fields[2].control.value = newRequestId();
      onDone();
    } catch (error) {
      put(result);
      put(trouble, errorNotice(error, "The event was not published"));
    } finally {
      send.disabled = false;
    }
  }
  return h("form", { class: "card pad stack", onsubmit: submit, novalidate: true },
    h("h2", null, "Publish an event"),
    fields,
    h("div", { class: "row" }, send),
    trouble,
    result,
  );
}

function valuesOf(fields) {
  const body = {};
  for (const one of fields) {
    one.fail("");
    try {
      const value = one.value();
      if (one.control.required && !value) throw new FieldError("Please fill this in.");
      if (value !== undefined && value !== "") body[one.fieldName] = value;
    } catch (error) {
      if (!(error instanceof FieldError)) throw error;
      one.fail(error.message);
      one.control.focus();
      return null;
    }
  }
  return body;
}

function outcome(answer) {
  const started = answer.started_runs;
  const nothing = !answer.matched && !started.length && !answer.refused_starts.length;
  return notice(answer.refused_starts.length ? "waiting" : "done", "Published",
    h("div", null,
      nothing ? "Nobody waited for it and nothing listens to it. It is kept a day for waits that look back." : `${plural(answer.matched, "wait")} ended, ${plural(started.length, "run")} started.`,
    ),
    started.length > 0 && h("ul", null,
      started.slice(0, 20).map((run) => h("li", null, h("a", { href: href(`/runs/${run}`) }, h("code", null, run)))),
    ),
    answer.refused_starts.map((one) => h("div", { class: "break" }, h("code", null, one.code), ` ${one.family_slug}: ${one.message}`)));
}

function refusedStarts(signal) {
  const list = table({
    label: "Refused starts", key: (one) => `${one.run_id}/${one.event_id}`,
    columns: [
      { title: "When", class: "nowrap", cell: (one) => h("span", { title: dateTime(one.at) }, relative(one.at)) },
      { title: "Workflow", cell: (one) => h("a", { href: `#/definitions/${one.definition_id}` }, one.family_slug) },
      {
        title: "Event",
        cell: (one) => h("div", { class: "two-lines" },
          h("code", { class: "cut" }, one.event_name),
          h("span", { class: "muted small cut" }, one.correlation_key),
        ),
      },
      {
        title: "Why",
        cell: (one) => h("div", { class: "break" },
          h("code", null, one.code),
          ` ${one.message}`,
          one.errors.length > 0 && h("ul", { class: "faults small" },
            one.errors.map((item) => h("li", null, item.field && h("code", null, item.field), ` ${item.message}`)),
          ),
        ),
      },
    ],
  });
  const note = h("div", null);
  const foot = h("div", null);
  let rows = [];
  async function load(cursor = null) {
    try {
      const page = await api.get("/api/v2/workflow-events/refused-starts", { query: { limit: 50, cursor }, signal });
      rows = cursor ? [...rows, ...page.items] : page.items;
      list.update(rows);
      list.hidden = !rows.length;
      put(note, !rows.length && emptyState("None", "Every run that an event should start was started."));
      put(foot, page.next_cursor && button("More", { onclick: () => load(page.next_cursor) }));
    } catch (error) {
      if (error.name !== "AbortError") put(note, errorNotice(error));
    }
  }
  list.hidden = true;
  return { element: h("div", { class: "stack" }, note, list, foot), load: () => load() };
}
