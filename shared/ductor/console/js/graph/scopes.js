/**
 * A definition document as a graph: nodes, edges, and the bodies that scatters repeat.
 * Takes what is written, faults included: a half-typed draft draws as far as it makes sense. Judges nothing.
 */

/** The wire spells enumerations in two ways; the console uses the short one: `STEP_TYPE_WAIT_EVENT` is `wait_event`. */
export function short(value) {
  return String(value ?? "")
    .replace(/^(STEP_TYPE|EDGE_TYPE|DEFINITION_STATUS)_/i, "")
    .toLowerCase();
}

const records = (value) =>
  Array.isArray(value) ? value.filter((item) => item && typeof item === "object" && !Array.isArray(item)) : [];

/** What a step does, in one line: its action, its child workflow, its duration. */
function subtitleOf(step, type) {
  const args = step.args && typeof step.args === "object" ? step.args : {};
  const named = {
    action: step.action,
    subworkflow: args.family_slug,
    wait: args.duration ?? args.until,
    wait_event: args.event_name,
    bridge: args.task_type,
    ai_action: args.model,
    ai_agent: args.model,
    dataflow: args.operation,
  }[type];
  return typeof named === "string" && named ? named : type.replaceAll("_", " ");
}

/**
 * @param {object} definition a definition document, or anything that a person has typed so far
 * @returns {{nodes: object[], edges: object[], groups: object[]}} what `graphView` and `layout` take.
 *   Steps without a ref and repeated refs are left out; so are edges whose ends do not exist.
 */
export function graphOf(definition) {
  const nodes = [];
  const seen = new Set();
  for (const step of records(definition?.steps)) {
    const id = String(step.ref ?? step.id ?? "");
    if (!id || seen.has(id)) continue;
    seen.add(id);
    const type = short(step.type) || "action";
    nodes.push({ id, type, title: String(step.title || id), subtitle: subtitleOf(step, type) });
  }
  const edges = [];
  for (const edge of records(definition?.edges)) {
    const source = String(edge.source_ref ?? "");
    const target = String(edge.target_ref ?? "");
    if (!seen.has(source) || !seen.has(target)) continue;
    const condition = typeof edge.condition === "string" ? edge.condition : "";
    edges.push({ source, target, type: short(edge.type) || "success", condition });
  }
  return { nodes, edges, groups: scatterGroups(nodes, edges) };
}

/**
 * The bodies of the scatters, innermost membership only.
 * @param {{id: string, type: string}[]} nodes
 * @param {{source: string, target: string, type: string}[]} edges
 * @returns {{id: string, gather: string, parent: string|null, members: string[]}[]} `id` is the scatter's; a body that
 *   is open, empty or not closed by a gather is no group.
 */
export function scatterGroups(nodes, edges) {
  const kind = new Map(nodes.map((node) => [node.id, node.type]));
  if (![...kind.values()].includes("scatter")) return [];
  const order = topological(nodes, edges);
  if (order.length < nodes.length) return [];
  const { stacks, gatherOf } = walk(order, edges, kind);
  const closed = new Set(gatherOf.keys());
  for (const edge of edges) dropOpen(edge, stacks, kind, gatherOf, closed);
  const innermost = (stack) => stack.findLast((scatter) => closed.has(scatter)) ?? null;
  const members = new Map([...closed].map((scatter) => [scatter, []]));
  for (const id of order) {
    const own = innermost(stacks.get(id));
    if (own !== null) members.get(own).push(id);
  }
  return order
    .filter((id) => closed.has(id) && members.get(id).length > 0)
    .map((id) => ({ id, gather: gatherOf.get(id), parent: innermost(stacks.get(id)), members: members.get(id) }));
}

/** Per step the scatters around it, outermost first, and which gather closes which scatter. */
function walk(order, edges, kind) {
  const into = new Map(order.map((id) => [id, []]));
  for (const edge of edges) into.get(edge.target).push(edge);
  const stacks = new Map();
  const gatherOf = new Map();
  for (const id of order) {
    let stack = [];
    for (const edge of into.get(id)) {
      const outer = stacks.get(edge.source);
      const found = enters(kind, edge) ? [...outer, edge.source] : outer;
      if (found.length > stack.length) stack = found;
    }
    if (kind.get(id) === "gather" && stack.length) {
      if (!gatherOf.has(stack.at(-1))) gatherOf.set(stack.at(-1), id);
      stack = stack.slice(0, -1);
    }
    stacks.set(id, stack);
  }
  return { stacks, gatherOf };
}

const enters = (kind, edge) => kind.get(edge.source) === "scatter" && edge.type === "success";

/** An edge over the border of a body, other than from its scatter or to its gather, means that there is no body. */
function dropOpen(edge, stacks, kind, gatherOf, closed) {
  const from = enters(kind, edge) ? [...stacks.get(edge.source), edge.source] : stacks.get(edge.source);
  const to = stacks.get(edge.target);
  for (const scatter of new Set([...from, ...to])) {
    const inside = from.includes(scatter) && to.includes(scatter);
    const leaves = from.at(-1) === scatter && gatherOf.get(scatter) === edge.target;
    if (!inside && !leaves) closed.delete(scatter);
  }
}

function topological(nodes, edges) {
  const waiting = new Map(nodes.map((node) => [node.id, 0]));
  const out = new Map(nodes.map((node) => [node.id, []]));
  for (const edge of edges) {
    waiting.set(edge.target, waiting.get(edge.target) + 1);
    out.get(edge.source).push(edge.target);
  }
  const order = nodes.map((node) => node.id).filter((id) => waiting.get(id) === 0);
  for (const id of order) {
    for (const target of out.get(id)) {
      waiting.set(target, waiting.get(target) - 1);
      if (waiting.get(target) === 0) order.push(target);
    }
  }
  return order;
}
