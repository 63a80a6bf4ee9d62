// Which approvals are open. Runs are read page by page; which of their steps are approvals stands in their definitions.

import { api } from "../api.js";
import { scatterGroups, short, graphOf } from "../graph/scopes.js";

const PAGE = 200;
const ITEMS = 100;
const AT_ONCE = 4;

/**
 * @typedef {{run: object, node: string, step: object, definition: object, since: string|null, deadline: string|null}} Gate
 *   `node` is how the step is decided: `review`, or `review@3` in an item of a scatter
 */
export function approvalReader() {
  const definitions = new Map();

  function definitionOf(id, signal) {
    if (!definitions.has(id)) {
      const reading = api.get(`/api/workflow-definitions/${id}`, { signal }).then(({ data }) => known(data));
      reading.catch(() => definitions.delete(id));
      definitions.set(id, reading);
    }
    return definitions.get(id);
  }

  /**
   * One page of active runs. @returns {Promise<{gates: Gate[], hidden: object[], cursor: string|null, looked: number}>}
   *   `hidden` are runs whose approvals only their own page shows: in nested scatters, or of definitions that nobody may read
   */
  async function page({ cursor, signal, workflow }) {
    const query = { active_only: true, limit: PAGE, cursor, workflow_type: workflow };
    const { data, next_cursor } = await api.get("/api/workflows/runs", { query, signal });
    const gates = [];
    const hidden = [];
    const waiting = data.filter((run) => run.current_steps.length);
    await inTurn(waiting, AT_ONCE, async (run) => {
      const definition = await definitionOf(run.definition_id, signal).catch(unreadable);
      const found = definition ? await gatesOf(run, definition, signal) : { gates: [], hidden: run.waiting_on?.kind === "approval" };
      gates.push(...found.gates);
      if (found.hidden) hidden.push(run);
    });
    gates.sort((a, b) => String(a.since).localeCompare(String(b.since)) || a.run.run_id.localeCompare(b.run.run_id));
    return { gates, hidden, cursor: next_cursor, looked: data.length };
  }
  return { page };
}

/** Definitions of the operator are invisible to tenants, their runs are not. */
function unreadable(error) {
  if (error.status === 404) return null;
  throw error;
}

/** A definition with its approvals by ref, and per scatter those in its body. */
function known(definition) {
  const steps = new Map((definition.steps ?? []).map((step) => [step.ref, step]));
  const approvals = new Set([...steps.values()].filter((step) => short(step.type) === "approval").map((step) => step.ref));
  const { nodes, edges } = graphOf(definition);
  const inside = new Map();
  const nested = new Set();
  for (const group of approvals.size ? scatterGroups(nodes, edges) : []) {
    const own = group.members.filter((ref) => approvals.has(ref));
    if (!own.length) continue;
    if (group.parent === null) inside.set(group.id, own);
    else nested.add(group.parent);
  }
  return { definition, steps, approvals, inside, nested };
}

async function gatesOf(run, { definition, steps, approvals, inside, nested }, signal) {
  const gates = [];
  const own = run.current_steps.filter((ref) => approvals.has(ref));
  const scattered = run.current_steps.flatMap((ref) => inside.get(ref) ?? []);
  const gate = (ref, node, wait) => ({
    run,
    node,
    step: steps.get(ref),
    definition,
    since: wait?.since ?? run.updated_at,
    deadline: wait?.deadline_at ?? null,
  });
  if (own.length === 1 && run.waiting_on?.kind === "approval") gates.push(gate(own[0], own[0], run.waiting_on));
  else if (own.length) {
    const { nodes } = await api.get(`/api/v2/workflow-runs/${run.run_id}/snapshot`, { signal });
    for (const ref of own) if (nodes[ref]?.status === "waiting") gates.push(gate(ref, ref, nodes[ref].waiting_on));
  }
  for (const ref of scattered) {
    const { nodes } = await api.get(`/api/v2/workflow-runs/${run.run_id}/snapshot`, { query: { scope: `${ref}@*`, limit: ITEMS }, signal });
    for (const [name, node] of Object.entries(nodes)) if (node.status === "waiting") gates.push(gate(ref, name, node.waiting_on));
  }
  return { gates, hidden: run.current_steps.some((ref) => nested.has(ref)) };
}

/** At most so many at a time. */
async function inTurn(items, limit, work) {
  const queue = [...items];
  const worker = async () => {
    while (queue.length) await work(queue.shift());
  };
  await Promise.all(Array.from({ length: Math.min(limit, queue.length) }, worker));
}

/** Who may decide, in words. */
export function audienceWords(step) {
  const audience = step.args?.audience ?? {};
  const roles = (audience.roles ?? []).map((role) => `role ${role}`);
  const all = [...roles, ...(audience.users ?? [])];
  const every = String(audience.match_mode ?? "any").toLowerCase() === "all";
  return all.join(every ? " and " : " or ") || "nobody";
}
