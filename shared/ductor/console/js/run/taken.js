// Which edges a run has really taken and how many items its scatters opened, read from its history. A long history is read a part at a time, up to a limit.

import { api } from "../api.js";
import { shortType } from "../format.js";

const PAGE = 200;
const MOST_PAGES = 10;
const ENDS = new Set(["node_completed", "node_failed", "node_skipped", "node_cancelled"]);

/**
 * @param {{v1: string}} paths of the run
 * @returns {{read: function(AbortSignal): Promise<void>, edges: function(): Map<string, Set<string>>|null, counts: function(): Map<string, number>}}
 *   `edges` answers the edges by node id, each as `type>target`; null when the history is longer than is read here. `counts`
 *   answers the items of each scatter that was seen to open
 */
export function takenEdges(paths) {
  const byNode = new Map();
  const counts = new Map();
  let cursor = null;
  let seen = 0;
  let pages = 0;
  let complete = true;

  function note(event) {
    if (event.type === "items_started") {
      // Items begin a few at a time, by the same edges.
      byNode.set(`${event.node}>`, new Set([...(byNode.get(`${event.node}>`) ?? []), ...names(event)]));
    } else if (event.type === "scatter_opened") counts.set(event.node, event.data.count);
    else if (ENDS.has(event.type)) byNode.set(event.node, new Set(names(event)));
  }

  async function readOn(signal) {
    while (pages < MOST_PAGES) {
      const answer = await api.get(`${paths.v1}/events`, { query: { limit: PAGE, cursor }, signal });
      answer.data.slice(seen).filter((event) => event.kind === "transition").forEach(note);
      seen = answer.next_cursor ? 0 : answer.data.length;
      if (!answer.next_cursor) return;
      cursor = answer.next_cursor;
      pages += 1;
    }
    complete = false;
  }
  let reading = Promise.resolve();

  return {
    /** Reads what is new; one reading at a time, because each goes on where the one before it ended. */
    read(signal) {
      reading = reading.catch(() => {}).then(() => readOn(signal));
      return reading;
    },
    edges: () => (complete ? byNode : null),
    counts: () => counts,
  };
}

const names = (event) => (event.data.taken ?? []).map((edge) => `${shortType(edge.type)}>${edge.target_ref}`);
