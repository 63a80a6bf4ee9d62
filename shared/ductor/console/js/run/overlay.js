// What a run has made of its graph: the state of each step, the edges that were taken, how far the items are. Pure.

import { plural } from "../format.js";
import { ended } from "../ui/status.js";

const ORDER = ["failed", "timed_out", "running", "scheduled", "retrying", "waiting", "paused", "pending", "completed", "cancelled", "skipped"];

/**
 * The graph of a definition with the states of a run.
 * @param {{nodes: Array, edges: Array, groups: Array}} graph from `graphOf`
 * @param {Object<string, object>} nodes of the snapshot
 * @param {Map<string, {nodes: Object, more: boolean}>} items of steps in scatters
 * @param {Map<string, Set<string>>|null} history the edges that were taken, from `takenEdges`; null: told from their ends
 * @param {Map<string, number>} counts the items of each scatter, as far as the history tells
 */
export function overlay(graph, nodes, items, history = null, counts = new Map()) {
  const shown = new Map();
  for (const node of graph.nodes) {
    const own = nodes[node.id];
    const repeated = items.get(node.id)?.nodes;
    if (own) shown.set(node.id, own);
    else if (repeated) shown.set(node.id, { status: together(Object.values(repeated)), items: Object.values(repeated) });
    // Deeper in scatters a step has no one state; its items are listed when it is chosen.
    else shown.set(node.id, { status: within(graph.groups, node.id, nodes) ? undefined : "pending" });
  }
  return {
    nodes: graph.nodes.map((node) => ({ ...node, status: shown.get(node.id).status, badge: badgeOf(node, shown.get(node.id), items) })),
    edges: graph.edges.map((edge) => ({ ...edge, taken: recorded(edge, history) ?? taken(edge, shown.get(edge.source), shown.get(edge.target)) })),
    groups: graph.groups.map((group) => ({ ...group, badge: progress(group, nodes[group.id], items, counts) })),
  };
}

/** Whether a step is repeated by a scatter that has begun. */
function within(groups, id, nodes) {
  const group = groups.find((one) => one.members.includes(id));
  return Boolean(group) && (Boolean(nodes[group.id]?.started_at) || within(groups, group.id, nodes));
}

/** One state for many items: the one that most needs a look. */
function together(nodes) {
  return ORDER.find((status) => nodes.some((node) => node.status === status)) ?? "pending";
}

function badgeOf(node, shown, items) {
  if (shown.items) {
    const done = shown.items.filter((one) => one.status === "completed").length;
    return `${done}/${shown.items.length}${items.get(node.id).more ? "+" : ""}`;
  }
  return shown.attempt > 1 ? `try ${shown.attempt}` : undefined;
}

function progress(group, scatter, items, counts) {
  const count = counts.get(group.id) ?? countOf(scatter);
  if (count !== null) return plural(count, "item");
  const first = group.members.map((member) => items.get(member)).find((one) => one?.nodes);
  if (!first) return undefined;
  const indexes = new Set(Object.keys(first.nodes).map((id) => id.split("@")[1]));
  return `${indexes.size}${first.more ? "+" : ""} items`;
}

function countOf(scatter) {
  try {
    const count = JSON.parse(scatter?.latest_output_json ?? "null")?.count;
    return Number.isInteger(count) ? count : null;
  } catch {
    return null;
  }
}

/** Whether the history says that an edge was taken; of steps that are repeated, in any item. Undefined: it says nothing. */
function recorded(edge, history) {
  if (!history) return undefined;
  const name = `${edge.type}>${edge.target}`;
  const into = history.get(`${edge.source}>`);
  if (into?.has(name)) return true;
  const own = history.get(edge.source);
  if (own) return own.has(name);
  let seen = into ? false : undefined;
  for (const [id, edges] of history) {
    if (!id.startsWith(`${edge.source}@`)) continue;
    if (edges.has(name)) return true;
    seen = false;
  }
  return seen;
}

/**
 * Whether an edge was taken, told from its ends. Undefined while its source has not ended.
 * A target that has begun has been reached by some edge; of several that fit, all are shown.
 */
export function taken(edge, source, target) {
  if (!source || !target || !ended(source.status)) return undefined;
  if (source.status === "cancelled") return false;
  const reached = target.status !== "skipped";
  if (!reached) return false;
  switch (edge.type) {
    case "success": return source.status === "completed" && !source.error;
    case "error": return source.status === "failed" || Boolean(source.status === "completed" && source.error);
    case "timeout": return source.status === "timed_out";
    case "true": case "false": return outcome(source, "value") === undefined ? source.status === "completed" : outcome(source, "value") === (edge.type === "true");
    case "approved": case "rejected": return decided(source, edge.type);
    default: return source.status !== "skipped" || target.status !== "pending";
  }
}

function outcome(source, name) {
  try {
    const value = JSON.parse(source.latest_output_json ?? "null")?.[name];
    return typeof value === "boolean" ? value : undefined;
  } catch {
    return undefined;
  }
}

function decided(source, type) {
  if (source.status !== "completed") return false;
  try {
    const output = JSON.parse(source.latest_output_json ?? "null") ?? {};
    const word = String(output.decision ?? output.outcome ?? "");
    if (/^(approved|rejected)$/i.test(word)) return word.toLowerCase() === type;
    if (typeof output.approved === "boolean") return output.approved === (type === "approved");
  } catch { /* a value that cannot be read says nothing */ }
  return true;
}
