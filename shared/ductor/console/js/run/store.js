// One run as the page knows it: its summary, every node, the definition it is pinned to, the items of its scatters. Reads
// again while it lives, and tells whoever listens.

import { api } from "../api.js";
import { graphOf } from "../graph/scopes.js";
import { poll } from "../poll.js";
import { ended, terminal } from "../ui/status.js";
import { takenEdges } from "./taken.js";

const ITEMS_SHOWN = 100;

/**
 * @param {string} runId
 * @param {AbortSignal} signal
 * @returns an object with `state` (`summary`, `snapshot`, `definition`, `graph`, `items`, `error`), `listen(function)`,
 *   `now()` (look at once) and `stop()`
 */
export function runStore(runId, signal) {
  const state = { runId, summary: null, snapshot: null, definition: null, graph: null, items: new Map(), taken: null, counts: new Map(), error: null };
  const listeners = new Set();
  const v1 = `/api/workflows/runs/${encodeURIComponent(runId)}`;
  const v2 = `/api/v2/workflow-runs/${encodeURIComponent(runId)}`;
  const edges = takenEdges({ v1 });
  let looks = null;

  const tell = () => listeners.forEach((listener) => listener(state));

  async function look(abort) {
    const answer = await api.get(v1, { signal: abort });
    const summary = answer.data.summary;
    const moved = !state.snapshot || JSON.stringify(summary) !== JSON.stringify(state.summary);
    const recovered = state.error !== null;
    state.error = null;
    if (moved) await read(summary, abort);
    if (moved || recovered) tell();
    return terminal(summary.status) && !summary.stalled ? "done" : moved ? "changed" : "quiet";
  }

  async function read(summary, abort) {
    const [snapshot] = await Promise.all([
      // A stalled run may be one whose state cannot be read: its summary shows all the same.
      api.get(`${v2}/snapshot`, { signal: abort }).catch((error) => {
        if (!summary.stalled) throw error;
        return { nodes: {}, context: null, checkpoints: {} };
      }),
      state.definition ? null : definition(summary.definition_id, abort),
    ]);
    Object.assign(state, { summary, snapshot });
    await items(abort);
    // A long history takes its time, and the page does not wait for it.
    edges.read(abort).then(() => {
      state.taken = edges.edges();
      state.counts = edges.counts();
      tell();
    }, () => {});
  }

  /** The definition may be hidden from a key without its scope; the run shows without its edges then. */
  async function definition(id, abort) {
    try {
      state.definition = (await api.get(`/api/workflow-definitions/${encodeURIComponent(id)}`, { signal: abort })).data;
      state.graph = graphOf(state.definition);
    } catch (error) {
      if (error.name === "AbortError") throw error;
      state.graph = null;
    }
  }

  /** The first items of every step that an outermost scatter repeats, once it has begun. */
  async function items(abort) {
    const wanted = [];
    for (const group of state.graph?.groups ?? []) {
      const scatter = state.snapshot.nodes[group.id];
      if (!scatter?.started_at) continue;
      const nested = new Set(state.graph.groups.filter((one) => one.parent === group.id).flatMap((one) => one.members));
      const finished = ended(scatter.status) && state.items.get(group.id)?.final;
      if (!finished) wanted.push(...group.members.filter((member) => !nested.has(member)).map((member) => [group.id, member]));
    }
    await Promise.all(wanted.map(async ([scatter, step]) => {
      try {
        const page = await api.get(`${v2}/snapshot`, { query: { scope: `${step}@*`, limit: ITEMS_SHOWN }, signal: abort });
        const final = ended(state.snapshot.nodes[scatter].status) && Object.values(page.nodes).every((node) => ended(node.status) || node.status === "pending");
        state.items.set(step, { nodes: page.nodes, more: Boolean(page.next_cursor) });
        state.items.set(scatter, { final });
      } catch (error) {
        if (error.name === "AbortError") throw error;
        state.items.delete(step);
      }
    }));
  }

  looks = poll(look, {
    onError: (error) => {
      state.error = error;
      tell();
    },
  });
  signal.addEventListener("abort", () => looks.stop(), { once: true });
  return {
    state,
    paths: { v1, v2 },
    listen(listener) {
      listeners.add(listener);
      if (state.summary || state.error) listener(state);
      return () => listeners.delete(listener);
    },
    now: () => looks.now(),
    stop: () => looks.stop(),
  };
}

/** The node of an id, in the run's own scope or among the items read so far. */
export function nodeOf(state, id) {
  if (!id) return null;
  const own = state.snapshot?.nodes[id];
  if (own) return own;
  return state.items.get(id.split("@")[0])?.nodes?.[id] ?? null;
}

/** The step of a node id in the definition. */
export function stepOf(state, id) {
  return state.definition?.steps?.find((step) => step.ref === id.split("@")[0]) ?? null;
}
