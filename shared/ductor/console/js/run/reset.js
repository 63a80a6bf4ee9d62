// Reset: choose a point of the history, see what would be kept and what would run again, then fork.

import { h, put } from "../dom.js";
import { api, newRequestId } from "../api.js";
import { dateTime, plural } from "../format.js";
import { navigate } from "../router.js";
import { dialog, field } from "../ui/dialog.js";
import { errorNotice } from "../ui/notice.js";
import { toast } from "../ui/toast.js";

/** @param {object} store from `runStore` */
export async function resetDialog(store) {
  const { v2 } = store.paths;
  const requestId = newRequestId();
  const preview = h("div", { class: "stack", "aria-live": "polite" }, h("p", { class: "muted" }, "Reading the points to start from…"));
  const points = h("div", { class: "points", role: "radiogroup", "aria-label": "Point of the history" });
  const overrides = field({ name: "input_overrides", label: "Other args for steps (JSON, by step)", kind: "json", placeholder: "{\"charge\": {\"amount\": 5}}", hint: "These steps, and what follows from them, run with these args." });
  const preserve = field({ name: "preserve_outputs", label: "Later results to take over", placeholder: "step names, separated by commas", hint: "These steps have completed after the point; their results are used instead of running them." });
  let chosen = null;
  let turn = 0;

  const body = () => {
    const names = preserve.value().split(",").map((name) => name.trim()).filter(Boolean);
    return { transition_seq: chosen, input_overrides: overrides.value() ?? {}, preserve_outputs: names };
  };
  async function look() {
    if (chosen === null) return;
    const mine = (turn += 1);
    try {
      const answer = await api.post(`${v2}:previewReset`, body());
      if (mine === turn) put(preview, shown(answer));
    } catch (error) {
      if (mine === turn) put(preview, errorNotice(error, "This reset would be refused"));
    }
  }
  overrides.control.addEventListener("change", look);
  preserve.control.addEventListener("change", look);
  api.get(`${v2}/reset-targets`).then(({ targets }) => {
    const newest = [...targets].reverse();
    put(points, newest.map((target) => h("label", { class: "point" },
      h("input", { type: "radio", name: "point", value: target.transition_seq, onchange: () => {
        chosen = target.transition_seq;
        look();
      } }),
      h("span", { class: "grow" }, target.reason), h("span", { class: "small faint nowrap" }, `#${target.transition_seq} · ${dateTime(target.at)}`))));
    put(preview, h("p", { class: "muted" }, "Choose a point to see what a fork would keep."));
    points.querySelector("input")?.focus();
  }, (error) => put(preview, errorNotice(error)));

  const more = h("details", { class: "more-reset" }, h("summary", null, "Other args, results to take over"), h("div", { class: "stack" }, overrides, preserve));
  const reason = field({ name: "reason", label: "Reason", placeholder: "optional", hint: "Stands in the audit trail." });
  const answer = await dialog({
    title: "Reset: fork this run", wide: true, action: "Fork the run",
    body: [h("p", { class: "muted" }, "A new run begins where this one was at that point. This run is not touched."), points, preview, more],
    fields: [reason],
    submit: async (values) => {
      if (chosen === null) throw new Error("Choose a point of the history first.");
      return api.post(`${v2}:reset`, { request_id: requestId, reason: values.reason, ...body() });
    },
  });
  if (answer) {
    toast("done", "Forked", "The new run goes on by itself; this is it.");
    navigate(`/runs/${answer.new_run_id}`);
  }
}

function shown({ kept, adopted, rerun, items }) {
  const group = (name, title, steps) => h("div", { class: "preview-group", "data-group": name },
    h("h3", null, title, " ", h("span", { class: "count" }, steps.length)),
    h("div", { class: "row wrap" }, steps.length ? steps.map((step) => h("span", { class: "chip mono" }, step)) : h("span", { class: "faint small" }, "none")));
  return [
    h("div", { class: "preview" }, group("kept", "Kept", kept), group("adopted", "Taken over later", adopted), group("rerun", "Run again", rerun)),
    items.length > 0 && h("ul", { class: "small muted" }, items.map((one) => h("li", null, h("code", null, one.step), ` in ${one.scatter}: ${one.kept} kept, ${one.adopted} taken over, of ${plural(one.of, "item")}`))),
  ];
}
