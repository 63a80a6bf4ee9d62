// Batches that were begun in this browser, and the way to a new one.

import { h } from "../dom.js";
import { dateTime, relative, words } from "../format.js";
import { navigate } from "../router.js";
import { button } from "../ui/buttons.js";
import { field } from "../ui/dialog.js";
import { emptyState } from "../ui/notice.js";
import { table } from "../ui/table.js";
import { begunHere, filterWords } from "../operate/batches.js";

export function render(ctx) {
  ctx.title("Batches");
  const entries = begunHere();
  const list = table({
    label: "Batches", key: (one) => one.id, onOpen: (one) => navigate(`/batches/${one.id}`),
    columns: [
      { title: "Control", cell: (one) => h("a", { class: "strong", href: `#/batches/${one.id}` }, words(one.operation)) },
      { title: "Runs", cell: (one) => h("span", { class: "break" }, filterWords(one.filter ?? {})) },
      { title: "Reason", cell: (one) => h("span", { class: "break muted" }, one.reason) },
      { title: "Begun", class: "nowrap", cell: (one) => h("span", { class: "muted", title: dateTime(one.at) }, relative(one.at)) },
    ],
  });
  list.update(entries);
  list.hidden = !entries.length;
  const id = field({ name: "batch", label: "Batch id", placeholder: "From the answer of a batch request" });
  const open = (event) => {
    event.preventDefault();
    if (id.value()) navigate(`/batches/${encodeURIComponent(id.value())}`);
  };
  return {
    element: h("div", { class: "page" },
      h("div", { class: "page-head" }, h("h1", null, "Batches"), h("a", { class: "button primary", href: "#/batches/new" }, "New batch")),
      h("p", { class: "muted" },
        "One control for every run that matches a filter. Listed are those that were begun in this browser; any other opens by its id.",
      ),
      !entries.length && emptyState(
        "No batch was begun here",
        "Begin with a filter: which runs shall be paused, resumed, redriven, cancelled or terminated?",
      ), list,
      h("form", { class: "inline-form", onsubmit: open }, id, button("Open", { type: "submit" }))),
  };
}
