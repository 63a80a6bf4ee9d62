// Every execution of one step by a worker: input, output, error, deliveries, heartbeat, what a model said.

import { h } from "../dom.js";
import { api } from "../api.js";
import { between, clock, dateTime, duration } from "../format.js";
import { jsonView } from "../ui/json.js";
import { ago } from "../ui/live.js";
import { notice } from "../ui/notice.js";
import { statusBadge } from "../ui/status.js";

const PAGE = 200;
const MOST_PAGES = 10;

/** All attempts of a run, or of one node, as far as ten pages go; `complete` says whether that was all. */
export async function readAttempts(store, { node } = {}) {
  const found = [];
  let cursor;
  for (let page = 0; page < MOST_PAGES; page += 1) {
    const answer = await api.get(`${store.paths.v2}/attempts`, { query: { limit: PAGE, cursor, node } });
    found.push(...answer.items);
    cursor = answer.next_cursor;
    if (!cursor) return { attempts: found, complete: true };
  }
  return { attempts: found, complete: false };
}

/** The attempts of one node, newest first, as elements. */
export async function attemptsOf(store, id) {
  const { attempts, complete } = await readAttempts(store, { node: id });
  const mine = attempts.reverse();
  return [
    !complete && notice("idle", "", "The step has more attempts than are shown here."),
    mine.length ? mine.map((attempt, index) => one(attempt, index === 0)) : h("p", { class: "faint small" }, "None has been taken by a worker yet."),
  ];
}

function one(attempt, open) {
  const fact = (name, value) => value && [h("dt", null, name), h("dd", null, value)];
  return h("details", { class: "attempt", open },
    h("summary", null, h("span", { class: "row" }, h("strong", null, `#${attempt.attempt}`), statusBadge(attempt.status), h("span", { class: "muted small" }, between(attempt.started_at, attempt.finished_at)),
      attempt.cancel_requested && h("span", { class: "chip" }, "asked to stop"))),
    h("div", { class: "stack" },
      h("dl", { class: "facts small" },
        fact("Handed out", dateTime(attempt.scheduled_at)), fact("Began", attempt.started_at && clock(attempt.started_at)), fact("Ended", attempt.finished_at && clock(attempt.finished_at)),
        fact("Worker", attempt.worker), fact("Key", attempt.actor), fact("Deliveries", attempt.deliveries > 1 && String(attempt.deliveries)),
        fact("Sign of life", !attempt.finished_at && attempt.heartbeat_at && ago(attempt.heartbeat_at))),
      attempt.heartbeat_details !== null && [h("h4", null, "Progress"), jsonView(attempt.heartbeat_details, { open: 1 })],
      attempt.error && notice("failed", h("code", null, attempt.error.code), h("div", null, attempt.error.message), attempt.error.details !== null && jsonView(attempt.error.details, { open: 0 })),
      h("h4", null, "Input"), attempt.input_large ? h("p", { class: "faint small" }, "Over 8 KB, not shown.") : jsonView(attempt.input, { open: 1 }),
      attempt.output !== null && [h("h4", null, "Output"), jsonView(attempt.output, { open: 1 })],
      attempt.output_large && h("p", { class: "faint small" }, "The output is over 8 KB: read it above."),
      attempt.usage.map((use) => h("p", { class: "small muted" }, `${use.provider} ${use.model}: ${use.calls} calls, ${use.input_tokens} tokens in, ${use.output_tokens} out, ${duration(use.latency_ms)}`)),
      attempt.conversation.length > 0 && h("details", null, h("summary", null, `Conversation (${attempt.conversation.length})`), attempt.conversation.map((said) => h("div", { class: "stack said" },
        h("div", { class: "small muted" }, `${said.kind} ${said.name} · ${said.outcome} · ${duration(said.took_ms)}`), said.content_large ? h("p", { class: "faint small" }, "Over 8 KB, not shown.") : jsonView(said.content, { open: 1 }))))));
}
