// Sends a control and stays with it: accepted first, then applied or rejected, as the run's audit trail says.

import { api, ApiError, newRequestId } from "../api.js";
import { toast } from "../ui/toast.js";
import { words } from "../format.js";

const WATCHED_MS = 60_000;
const PAGE = 200;

/**
 * POSTs `body` with a request id of its own and watches what becomes of it. Repeats of one click carry one id.
 * @param {{v2: string}} paths of the run
 * @param {string} path below the API, for example `…/workflow-runs/<id>:pause`
 * @param {{label: string, requestId?: string, link?: Node, onApplied?: function(object): void}} options
 *   `link` stands with the news where the run's own page is not open
 * @returns {Promise<object>} the answer `accepted`; rejects with the refusal
 */
export async function send(paths, path, body, { label, requestId = newRequestId(), link, onApplied = () => {} }) {
  const answer = await api.post(path, { request_id: requestId, ...body });
  const more = link ? [link] : [];
  const news = toast("waiting", `${label} accepted`, "It is on disk. Waiting until the run has applied it…", ...more);
  watch(paths, requestId).then((entry) => {
    if (!entry) news.update("waiting", `${label} accepted`, "It has not been applied yet. The history will show it.", ...more);
    else if (entry.outcome === "rejected") news.update("failed", `${label} was rejected`, `${entry.code}: ${entry.message}`, ...more);
    else news.update("done", `${label}: ${words(entry.outcome).toLowerCase()}`, ...more);
    onApplied(entry);
  }, (error) => news.update("failed", `${label} accepted`, `What became of it cannot be read: ${error.message}`, ...more));
  return answer;
}

/** The audit entry of a request; null when there is none within a minute. */
async function watch(paths, requestId) {
  const until = Date.now() + WATCHED_MS;
  let cursor;
  for (let round = 0; Date.now() < until;) {
    const page = await api.get(`${paths.v2}/audit`, { query: { limit: PAGE, cursor } }).catch((error) => {
      if (error instanceof ApiError && error.status >= 500) return { items: [], next_cursor: null };
      throw error;
    });
    const found = page.items.find((entry) => entry.request_id === requestId);
    if (found) return found;
    if (page.next_cursor) cursor = page.next_cursor;
    else {
      await new Promise((resolve) => setTimeout(resolve, Math.min(2000, 150 * 1.5 ** round)));
      round += 1;
    }
  }
  return null;
}
