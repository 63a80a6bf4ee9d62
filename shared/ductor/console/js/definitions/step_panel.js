// One step of a definition, read: what it does, when, what happens when it fails, and what surrounds it.

import { h } from "../dom.js";
import { duration, phrase } from "../format.js";
import { short } from "../graph/scopes.js";
import { typeIcon } from "../graph/icons.js";
import { jsonView } from "../ui/json.js";
import { iconButton } from "../ui/buttons.js";
import { edgeWords, retryWords } from "./words.js";

/** Names of fields that have a line or section of their own. */
const SHOWN = new Set([
  "ref", "id", "type", "title", "description", "action", "args", "condition", "join", "on_error", "connection_ref",
  "connection_ref_mode", "timeout_ms", "heartbeat_timeout_ms", "effects", "compensation", "redaction_policy",
]);

/**
 * @param {object} definition
 * @param {string} ref
 * @param {{onSelect: function(string|null): void, actions?: Array}} options
 */
export function stepPanel(definition, ref, { onSelect, actions = [] }) {
  const step = (definition.steps ?? []).find((one) => (one?.ref ?? one?.id) === ref);
  if (!step) return null;
  const type = short(step.type);
  return h("section", { class: "panel", "aria-label": `Step ${ref}` },
    h("div", { class: "panel-head" },
      h("div", { class: "type-tile" }, typeIcon(type, { size: 20 })),
      h("div", { class: "grow" },
        h("h2", { class: "break" }, step.title || ref),
        h("div", { class: "small muted" }, h("code", null, ref), " · ", phrase(type)),
      ),
      iconButton("cross", "Close the step", { onclick: () => onSelect(null) })),
    step.description && h("p", { class: "muted break" }, step.description),
    facts(step, type),
    step.args && Object.keys(step.args).length > 0 && section("Args", jsonView(step.args)),
    step.effects && section("Effects", jsonView(step.effects)),
    step.compensation && section("Compensation", jsonView(step.compensation)),
    ways("Comes after", definition, ref, "target_ref", "source_ref", onSelect),
    ways("Leads to", definition, ref, "source_ref", "target_ref", onSelect),
    rest(step), actions.length > 0 && h("div", { class: "row wrap" }, actions));
}

function section(title, ...content) {
  return h("div", { class: "panel-part" }, h("h3", null, title), content);
}

function facts(step, type) {
  const lines = [
    ["Action", step.action && type !== "approval" && h("code", null, step.action)],
    [
      "Connection",
      step.connection_ref && [h("code", null, step.connection_ref), step.connection_ref_mode === "environment" && " (by the environment)"],
    ],
    ["Only if", step.condition && h("code", { class: "break" }, step.condition)],
    ["Joins", step.join && short(step.join) === "all" && "all incoming edges must be taken"],
    ["Retries", retryWords(step)],
    ["Timeout", step.timeout_ms > 0 && `${duration(step.timeout_ms)} per attempt`],
    ["Heartbeat", step.heartbeat_timeout_ms > 0 && `at least every ${duration(step.heartbeat_timeout_ms)}`],
    ["On error", step.on_error === "continue" && "the run goes on"],
    ["Shown as", step.redaction_policy && { none: "plain values", omit: "nothing", hashed: "hashes" }[step.redaction_policy]],
  ].filter(([, value]) => value);
  return lines.length > 0 && h("dl", { class: "facts" }, lines.map(([name, value]) => [h("dt", null, name), h("dd", null, value)]));
}

function ways(title, definition, ref, own, other, onSelect) {
  const edges = (definition.edges ?? []).filter((edge) => edge?.[own] === ref);
  if (!edges.length) return null;
  return section(title, h("ul", { class: "ways" }, edges.map((edge) => h("li", null,
    h("button", { type: "button", class: "link", onclick: () => onSelect(edge[other]) }, edge[other]),
    h("span", { class: "muted small" }, " ", edgeWords(edge)),
    edge.condition && h("code", { class: "break small" }, edge.condition)))));
}

/** Fields that have no line above: nothing of a step is hidden. */
function rest(step) {
  const others = Object.entries(step).filter(([name]) => !SHOWN.has(name) && !name.startsWith("retry_") && name !== "non_retryable_codes");
  return others.length > 0 && section("More", jsonView(Object.fromEntries(others)));
}
