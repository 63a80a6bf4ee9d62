// A run against time: one row per step, a bar per attempt and per wait, the pauses between attempts dotted.

import { h, put } from "../dom.js";
import { clock, dateTime, duration, instant } from "../format.js";
import { errorNotice, notice } from "../ui/notice.js";
import { statusIcon, terminal, tone } from "../ui/status.js";
import { icon } from "../ui/icons.js";
import { readAttempts } from "./attempts.js";
import { compressedScale, evenScale, worthCompressing } from "./scale.js";

const TICKS = 6;
const MOST_ROWS = 300;

/** @param {object} store from `runStore` @param {function(string|null): void} select */
export function timelineTab(store, select) {
  const element = h("div", { class: "timeline card", role: "group", "aria-label": "Timeline" }, h("p", { class: "faint pad" }, "Reading…"));
  let attempts = [];
  let complete = true;
  let version = null;
  let selected = null;
  let timer = null;
  let compressed = null;
  const choice = h("input", { type: "checkbox", onchange: () => {
    compressed = choice.checked;
    draw();
  } });
  const toggle = h("label", { class: "check small timeline-choice" }, choice, "Compress long waits");

  function draw() {
    const { summary, snapshot } = store.state;
    if (!snapshot) return;
    const rows = rowsOf(snapshot.nodes, attempts);
    const start = instant(summary.started_at ?? summary.created_at);
    const end = Math.max(start + 1, instant(summary.finished_at) ?? Date.now(), ...rows.flatMap((row) => row.bars.map((bar) => bar.to ?? 0)));
    const instants = rows.flatMap((row) => row.bars.flatMap((bar) => [instant(bar.from), bar.to])).filter((time) => time !== null);
    compressed ??= worthCompressing(start, end, instants);
    choice.checked = compressed;
    const scale = compressed ? compressedScale(start, end, instants) : evenScale(start, end);
    const at = (time) => `${(scale.at(time) * 100).toFixed(3)}%`;
    put(element, !complete && notice("idle", "", "Only the first attempts of this run are drawn."),
      h("div", { class: "timeline-head" }, h("span", { class: "small faint" }, dateTime(summary.started_at)), axis(scale, start), toggle),
      h("div", { class: "timeline-rows" }, rows.slice(0, MOST_ROWS).map((row) => line(row, at, end))),
      rows.length > MOST_ROWS && h("p", { class: "muted small pad" }, `${rows.length - MOST_ROWS} more steps are not drawn.`));
    mark(selected);
  }

  function line(row, at, end) {
    return h("button", { type: "button", class: "timeline-row", dataset: { node: row.id }, "data-tone": tone(row.status), onclick: () => select(row.id), title: row.title },
      h("span", { class: "timeline-name row" }, h("span", { class: "tone-icon" }, icon(statusIcon(row.status))), h("span", { class: "cut" }, row.title)),
      h("span", { class: "timeline-track" }, row.bars.map((bar) => h("span", {
        class: `bar ${bar.kind}`, "data-tone": bar.tone, title: `${bar.label}: ${clock(bar.from)}, ${duration((bar.to ?? end) - instant(bar.from))}`,
        style: { left: at(instant(bar.from)), width: `calc(${at(bar.to ?? end)} - ${at(instant(bar.from))})` },
      }))), h("span", { class: "timeline-took small muted num" }, words(row, end)));
  }

  function mark(id) {
    selected = id;
    for (const row of element.querySelectorAll(".timeline-row")) row.setAttribute("aria-pressed", String(row.dataset.node === id));
  }

  async function read() {
    try {
      ({ attempts, complete } = await readAttempts(store));
      draw();
    } catch (error) {
      if (error.name !== "AbortError") put(element, errorNotice(error));
    }
  }
  return {
    element, mark,
    show() {
      const now = store.state.summary?.db_record_version;
      if (now !== undefined && now !== version) {
        version = now;
        read();
      }
      // What is at work grows while it is looked at.
      clearInterval(timer);
      timer = setInterval(() => {
        if (!element.isConnected || terminal(store.state.summary?.status)) clearInterval(timer);
        else if (!document.hidden && !element.contains(document.activeElement)) draw();
      }, 2000);
    },
  };
}

/**
 * One row per node that has begun, in the order in which they did.
 * @returns {Array<{id: string, title: string, status: string, bars: Array<{kind: string, tone: string, from: string, to: number|null, label: string}>}>}
 */
export function rowsOf(nodes, attempts) {
  const byNode = new Map();
  for (const attempt of attempts) byNode.set(attempt.node, [...(byNode.get(attempt.node) ?? []), attempt]);
  const ids = new Set([...Object.keys(nodes).filter((id) => nodes[id].started_at), ...byNode.keys()]);
  const rows = [...ids].map((id) => {
    const node = nodes[id];
    const own = (byNode.get(id) ?? []).sort((one, other) => one.attempt - other.attempt);
    const status = node?.status ?? own.at(-1)?.status ?? "pending";
    return { id, title: node?.title || id, status, from: node?.started_at ?? own[0]?.scheduled_at ?? own[0]?.started_at, bars: own.length ? attemptBars(own, node) : waitBar(node) };
  });
  return rows.filter((row) => row.from).sort((one, other) => instant(one.from) - instant(other.from));
}

function attemptBars(attempts, node) {
  const bars = [];
  attempts.forEach((attempt, index) => {
    const from = attempt.started_at ?? attempt.scheduled_at;
    const to = instant(attempt.finished_at);
    const next = attempts[index + 1];
    bars.push({ kind: "work", tone: tone(attempt.status), from, to, label: `Attempt ${attempt.attempt} ${attempt.status}` });
    const until = next ? instant(next.started_at ?? next.scheduled_at) : node?.status === "retrying" ? instant(node.next_retry_at) : null;
    if (to !== null && until !== null && until > to) bars.push({ kind: "pause", tone: "waiting", from: attempt.finished_at, to: Math.min(until, Math.max(to, Date.now())), label: "Pause before the next attempt" });
  });
  return bars;
}

function waitBar(node) {
  if (!node?.started_at) return [];
  const instantly = node.finished_at === node.started_at;
  return [{ kind: instantly ? "moment" : "wait", tone: tone(node.status), from: node.started_at, to: instant(node.finished_at), label: node.status }];
}

function words(row, end) {
  if (!row.bars.length) return "";
  const from = instant(row.from);
  const to = row.bars.at(-1).to ?? end;
  const tries = row.bars.filter((bar) => bar.kind === "work").length;
  return `${duration(to - from)}${tries > 1 ? ` · ${tries} attempts` : ""}`;
}

function axis(scale, start) {
  return h("span", { class: "timeline-axis" }, Array.from({ length: TICKS }, (_, index) => h("span", { class: "small faint", style: { left: `${(index / TICKS) * 100}%` } }, index ? `+${duration(scale.time(index / TICKS) - start)}` : "0")));
}
