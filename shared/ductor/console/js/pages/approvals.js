// The inbox of approvals: what waits for a person, and the decision.

import { h, put } from "../dom.js";
import { newRequestId } from "../api.js";
import { dateTime, plural, relative } from "../format.js";
import { poll } from "../poll.js";
import { setQuery } from "../router.js";
import { button } from "../ui/buttons.js";
import { dialog } from "../ui/dialog.js";
import { emptyState, errorNotice, notice } from "../ui/notice.js";
import { live } from "../ui/live.js";
import { typeIcon } from "../graph/icons.js";
import { approvalReader, audienceWords } from "../operate/approvals.js";
import { decidedBy, decisionFields, decisionOf, inputLine } from "../operate/decision.js";
import { send } from "../run/send.js";

const keyOf = (gate) => `${gate.run.run_id}/${gate.node}`;

export function render(ctx) {
  ctx.title("Approvals");
  const reader = approvalReader();
  const refused = new Map();
  const decided = new Set();
  const inputs = new Map();
  let workflow = ctx.query.workflow ?? "";
  let pages = 1;
  let shown = "";
  const note = h("div", null);
  const list = h("ul", { class: "gates" });
  const foot = h("div", { class: "row" });
  const filter = h(
    "input",
    {
      class: "input",
      type: "search",
      placeholder: "Any workflow",
      "aria-label": "Workflow",
      value: workflow,
      onchange: () => setQuery({ workflow: filter.value.trim() }),
    },
  );

  async function look(signal) {
    const gates = [];
    const hidden = [];
    let cursor = null;
    let looked = 0;
    for (let page = 0; page < pages && (page === 0 || cursor); page += 1) {
      const found = await reader.page({ cursor, signal, workflow });
      gates.push(...found.gates);
      hidden.push(...found.hidden);
      looked += found.looked;
      ({ cursor } = found);
    }
    const now = JSON.stringify([
      gates.map((gate) => [keyOf(gate), gate.deadline]),
      hidden.map((run) => run.run_id),
      Boolean(cursor),
      [...refused.keys()],
    ]);
    if (now === shown) return "same";
    shown = now;
    show(gates, hidden, cursor, looked);
    return "changed";
  }
  function show(gates, hidden, cursor, looked) {
    const open = gates.filter((gate) => !decided.has(keyOf(gate)));
    put(list, open.map((gate) => gateCard(gate, refused.get(keyOf(gate)), decide, inputs)));
    put(note,
      hidden.length > 0 && notice(
        "idle",
        null,
        "These approvals are decided on the page of their run: ",
        hidden.slice(0, 10).map((run) => [h("a", { href: `#/runs/${run.run_id}` }, run.subject_id || run.run_id), " "]),
      ),
      !open.length && emptyState(
        cursor ? "No approval among the newest runs" : "Nothing waits for a decision",
        "Runs that come to an approval step show here, whoever has to decide.",
      ));
    put(
      foot,
      open.length > 0 && h("span", { class: "small muted" }, `${plural(open.length, "approval")} in ${plural(looked, "active run")}`),
      cursor && button("Look further back", { onclick: () => { pages += 1; poller.now(); } }),
    );
  }
  async function decide(gate, verb) {
    const outcome = await decisionDialog(gate, verb, {
      onRefused: (message) => refused.set(keyOf(gate), message),
      // Somebody else may have been faster: then the list says what still waits.
      onApplied(entry) {
        if (entry?.outcome !== "rejected") return;
        decided.delete(keyOf(gate));
        shown = "";
        poller.now();
      },
    });
    if (outcome) decided.add(keyOf(gate));
    shown = "";
    poller.now();
  }
  const poller = poll(look, { fastest: 2000, onError: (error) => put(note, errorNotice(error, undefined, { again: true })) });
  return {
    element: h("div", { class: "page" },
      h("div", { class: "page-head" }, h("h1", null, "Approvals")),
      h("div", { class: "filters" }, filter),
      note,
      list,
      foot,
    ),
    update(next) {
      workflow = next.query.workflow ?? "";
      filter.value = workflow;
      pages = 1;
      shown = "";
      poller.now();
    },
    dispose: () => poller.stop(),
  };
}

function gateCard(gate, why, decide, inputs) {
  const { run, step, definition } = gate;
  return h("li", { class: "card gate", dataset: { run: run.run_id, node: gate.node } },
    h("div", { class: "type-tile" }, typeIcon("approval", { size: 20 })),
    h("div", { class: "grow stack-s" },
      h("div", { class: "break" },
        h("strong", null, step.title || step.ref),
        h("span", { class: "muted" }, " in "),
        h("a", { href: `#/runs/${run.run_id}` }, definition.title || run.workflow_type),
        h("span", { class: "faint" }, ` v${run.definition_version}`),
      ),
      step.description && h("p", { class: "muted break" }, step.description),
      h("div", { class: "row wrap small muted" },
        gate.node !== step.ref && h("span", { class: "chip" }, gate.node),
        run.subject_id && h("span", { class: "chip" }, [run.subject_type, run.subject_id].filter(Boolean).join(" ")),
        run.correlation_labels.map((label) => h("span", { class: "chip" }, `${label.key}=${label.id}`)),
        live(() => `asked ${relative(gate.since)}`, { title: dateTime(gate.since) }),
        gate.deadline && live(() => `· until ${dateTime(gate.deadline)} (${relative(gate.deadline)})`)),
      h("div", { class: "small muted break" },
        `May be decided by ${audienceWords(step)}`,
        step.args?.approver_role && ` (${step.args.approver_role})`,
      ),
      inputLine(run.run_id, inputs),
      why && notice("waiting", "Your key is not in the audience of this approval", h("span", null, why))),
    h("div", { class: "row wrap gate-actions" },
      button("Reject", { onclick: () => decide(gate, "reject"), why: why && "Your key is not in the audience" }),
      button(
        "Approve",
        { kind: "primary", icon: "check", onclick: () => decide(gate, "approve"), why: why && "Your key is not in the audience" },
      )));
}

/** @returns {Promise<boolean>} whether the decision was accepted */
async function decisionDialog(gate, verb, { onRefused, onApplied }) {
  const approve = verb === "approve";
  const label = approve ? "Approve" : "Reject";
  const requestId = newRequestId();
  const v2 = `/api/v2/workflow-runs/${gate.run.run_id}`;
  const link = h("a", { href: `#/runs/${gate.run.run_id}` }, "Open the run");
  const answer = await dialog({
    title: `${label}: ${gate.step.title || gate.step.ref}`, action: label, danger: !approve,
    body: [
      h("p", { class: "muted small break" },
        `Run ${gate.run.run_id}. May be decided by ${audienceWords(gate.step)}; who decides is the API key that you signed in with.`,
      ),
      decidedBy(gate.run.run_id),
    ],
    fields: decisionFields(gate.step.ref),
    submit: async (values) => {
      try {
        return await send({ v2 }, `${v2}/steps/${encodeURIComponent(gate.node)}:${verb}`, decisionOf(values), { label, requestId, link, onApplied });
      } catch (error) {
        if (error.code === "AUDIENCE_MISMATCH") onRefused(error.message);
        throw error;
      }
    },
  });
  return Boolean(answer);
}
