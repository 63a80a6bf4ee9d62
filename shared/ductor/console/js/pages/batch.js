// One batch: how far it is, and which runs would not take the control.

import { h, put } from "../dom.js";
import { api } from "../api.js";
import { between, dateTime, words } from "../format.js";
import { poll } from "../poll.js";
import { errorNotice } from "../ui/notice.js";
import { statusBadge } from "../ui/status.js";
import { table } from "../ui/table.js";
import { begunHere, filterWords } from "../operate/batches.js";

export function render(ctx) {
  const { id } = ctx.params;
  ctx.title("Batch");
  const known = begunHere().find((one) => one.id === id);
  const top = h("div", { class: "stack" });
  const refusals = table({
    label: "Runs that refused", key: (one) => one.run_id,
    columns: [
      { title: "Run", cell: (one) => h("a", { href: `#/runs/${one.run_id}` }, h("code", null, one.run_id)) },
      { title: "Why", cell: (one) => h("code", null, one.code) },
    ],
  });
  const refused = h("section", { class: "stack", hidden: true }, h("h2", null, "Runs that would not take it"), refusals);
  let before = "";
  const poller = poll(async (signal) => {
    const batch = await api.get(`/api/v2/workflow-runs/batches/${encodeURIComponent(id)}`, { signal });
    const now = JSON.stringify([batch.status, batch.accepted, batch.refused]);
    const same = now === before;
    before = now;
    if (!same) put(top, shown(batch, known));
    refused.hidden = !batch.refusals.length;
    refusals.update(batch.refusals);
    if (batch.status === "completed") return "done";
    return same ? "same" : "changed";
  }, { fastest: 700, onError: (error) => put(top, errorNotice(error)) });
  return {
    element: h("div", { class: "page" },
      h("nav", { class: "crumbs", "aria-label": "Where" }, h("a", { href: "#/batches" }, "Batches"), ` / ${id}`),
      top,
      refused,
    ),
    dispose: () => poller.stop(),
  };
}

function shown(batch, known) {
  const figure = (count, label) => h("div", { class: "card pad figure" },
    h("strong", null, count.toLocaleString("en")),
    h("span", { class: "muted" }, label),
  );
  return [
    h("div", { class: "row wrap" }, h("h1", null, `${words(batch.operation)} many runs`), statusBadge(batch.status)),
    known && h("p", { class: "muted break" }, filterWords(known.filter ?? {}), known.reason && ` · ${known.reason}`),
    h("div", { class: "figures" }, figure(batch.accepted, "runs have the control enqueued"), figure(batch.refused, "would not take it")),
    h("p", { class: "small muted" },
      `Begun ${dateTime(batch.created_at)}`,
      batch.finished_at ? `, done after ${between(batch.created_at, batch.finished_at)}` : ". It goes on in the background, also when this page is closed.",
    ),
  ];
}
