// What a run was started with, what it gave, its context and what it shows of itself.

import { h, put } from "../dom.js";
import { api } from "../api.js";
import { dateTime } from "../format.js";
import { elsewhere } from "../ui/elsewhere.js";
import { jsonView } from "../ui/json.js";
import { errorNotice } from "../ui/notice.js";
import { terminal } from "../ui/status.js";

/** @param {object} store from `runStore` */
export function valuesTab(store) {
  const section = (title, hint) => {
    const place = h("div", null, h("p", { class: "faint small" }, "Reading…"));
    return { place, element: h("section", { class: "card pad stack" }, h("h2", null, title), hint && h("p", { class: "muted small" }, hint), place) };
  };
  const input = section("Input");
  const output = section("Output");
  const context = section("Context");
  const rest = h("div", { class: "stack" });
  const element = h("div", { class: "values" }, input.element, output.element, context.element, rest);
  let begun = false;
  let finished = null;

  async function read(place, path, pick) {
    try {
      put(place, jsonView(pick((await api.get(path)).data), { open: 3 }));
    } catch (error) {
      if (error.name !== "AbortError") put(place, error.error_code === "ELSEWHERE" ? elsewhere(path) : errorNotice(error));
    }
  }
  return {
    element,
    show() {
      const { summary, snapshot } = store.state;
      if (!snapshot) return;
      if (!begun) read(input.place, `${store.paths.v1}/input`, (data) => data.input);
      begun = true;
      if (finished !== summary.finished_at || finished === null) {
        if (terminal(summary.status)) read(output.place, `${store.paths.v1}/output`, (data) => data.output);
        else put(output.place, h("p", { class: "muted" }, "The run has not ended; it has no output yet."));
        finished = summary.finished_at;
      }
      const empty = snapshot.context === null || (typeof snapshot.context === "object" && !Object.keys(snapshot.context).length);
      put(context.place, empty ? h("p", { class: "muted" }, "Empty.") : jsonView(snapshot.context));
      const own = Object.entries(summary.attributes).filter(([name]) => !name.startsWith("ductor."));
      put(rest,
        own.length > 0 && h("section", { class: "card pad stack" }, h("h2", null, "Attributes"), jsonView(Object.fromEntries(own))),
        Object.keys(snapshot.checkpoints).length > 0 && h("section", { class: "card pad stack" }, h("h2", null, "Checkpoints"), h("dl", { class: "facts" }, Object.entries(snapshot.checkpoints).map(([name, at]) => [h("dt", null, name), h("dd", null, dateTime(at))]))));
    },
    mark() {},
  };
}
