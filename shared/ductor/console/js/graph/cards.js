/** What a graph is made of, as SVG elements: the card of a step, an edge with its words, the frame of a scatter body. */

import { svg } from "../dom.js";
import { icon } from "../ui/icons.js";
import { statusIcon, tone } from "../ui/status.js";
import { typeIcon } from "./icons.js";
import { labelOf, labelWidth } from "./routes.js";

const FAILURES = new Set(["error", "timeout"]);

const words = (value) => String(value).replaceAll("_", " ");

let measure = null;

/** A text that is no wider than `room` in the font of the page, with an ellipsis where it was cut. */
export function clipped(text, room, font) {
  measure ??= document.createElement("canvas").getContext("2d");
  measure.font = font;
  const line = String(text).replace(/\s+/g, " ").slice(0, 200);
  if (measure.measureText(line).width <= room) return line;
  let [low, high] = [0, line.length];
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if (measure.measureText(`${line.slice(0, middle)}…`).width <= room) low = middle;
    else high = middle - 1;
  }
  return `${line.slice(0, low).trimEnd()}…`;
}

const family = () => getComputedStyle(document.documentElement).getPropertyValue("--font").trim() || "sans-serif";

/** What a screen reader says of a step. */
export function spoken(node) {
  const type = words(node.type);
  return [node.title || node.id, node.title === node.id ? "" : node.id, type, words(node.status ?? ""), node.badge ?? ""]
    .filter(Boolean)
    .join(", ");
}

/** @param {object} node @param {{x: number, y: number, width: number, height: number}} box */
export function card(node, box) {
  const group = svg("g", {
    class: "graph-node",
    transform: `translate(${box.x} ${box.y})`,
    role: "button",
    tabindex: -1,
    dataset: { id: node.id, type: node.type },
  });
  group.append(
    svg("rect", { class: "graph-halo", x: -4, y: -4, width: box.width + 8, height: box.height + 8, rx: 14 }),
    svg("rect", { class: "graph-card", width: box.width, height: box.height, rx: 10 }),
    svg("rect", { class: "graph-tile", x: 10, y: (box.height - 36) / 2, width: 36, height: 36, rx: 8 }),
    typeIcon(node.type, { x: 18, y: (box.height - 20) / 2, size: 20 }),
    svg("g", { class: "graph-words" }),
  );
  showState(group, node, box);
  return group;
}

/** Only what can change while a run goes on: state, badge, words. */
export function showState(group, node, box) {
  const holder = group.querySelector(".graph-words");
  const state = node.status ? String(node.status) : "";
  group.dataset.status = state;
  group.dataset.tone = node.tone ?? (state ? tone(state) : "none");
  group.setAttribute("aria-label", spoken(node));
  const [left, right] = [56, box.width - 12];
  const room = right - left;
  const font = family();
  const title = node.title || node.id;
  holder.replaceChildren();
  holder.append(svg("title", {}, `${title}\n${node.id} · ${words(node.type)}${state ? ` · ${words(state)}` : ""}`));
  const top = state ? room - 22 : room;
  holder.append(svg("text", { class: "graph-title", x: left, y: 25 }, clipped(title, top, `600 13px ${font}`)));
  if (state) holder.append(stateIcon(state, right - 15, 12));
  const said = [node.badge, state && state !== "pending" ? words(state) : ""].filter(Boolean).join(" · ");
  const word = said ? clipped(said, room * 0.8, `500 11px ${font}`) : "";
  const wordRoom = word ? widthOf(word, `500 11px ${font}`) + 10 : 0;
  const under = node.subtitle ?? (title === node.id ? words(node.type) : node.id);
  holder.append(svg("text", { class: "graph-ref", x: left, y: 43 }, clipped(under, room - wordRoom, `11px ${font}`)));
  if (word) holder.append(svg("text", { class: "graph-state", x: right, y: 43, "text-anchor": "end" }, word));
}

function stateIcon(state, x, y) {
  const made = icon(statusIcon(state));
  for (const [name, value] of Object.entries({ x, y, width: 16, height: 16 })) made.setAttribute(name, value);
  return svg("g", { class: "graph-status" }, made);
}

function widthOf(text, font) {
  measure.font = font;
  return measure.measureText(text).width;
}

/** @param {object} edge @param {{path: string, points: number[][], backward: boolean}} route */
export function edgeLine(edge, route) {
  const group = svg("g", { class: "graph-edge", dataset: { source: edge.source, target: edge.target } });
  const [x, y] = route.points.at(-1);
  const [, before] = route.points.at(-2);
  const sign = y >= before ? 1 : -1;
  group.append(
    svg("path", { class: "graph-line", d: route.path }),
    svg("path", { class: "graph-tip", d: `M${x} ${y}l-4.6 ${-8 * sign}q4.6 ${2.4 * sign} 9.2 0z` }),
  );
  if (FAILURES.has(edge.type)) group.classList.add("failure");
  if (route.backward) group.classList.add("backward");
  showTaken(group, edge);
  return group;
}

/** Whether the edge was taken: true and false are told apart from not known yet. */
export function showTaken(group, edge) {
  group.classList.toggle("taken", edge.taken === true);
  group.classList.toggle("passed-by", edge.taken === false);
}

/** The words of an edge on a chip, or null. */
export function edgeLabel(edge, route) {
  const text = labelOf(edge);
  if (!text || !route.label) return null;
  const width = labelWidth(text);
  const group = svg("g", { class: "graph-label", transform: `translate(${route.label.x} ${route.label.y})` });
  const full = [words(edge.type), edge.condition].filter(Boolean).join(": ");
  group.append(
    svg("title", {}, full),
    svg("rect", { x: -width / 2, y: -9.5, width, height: 19, rx: 9.5 }),
    svg("text", { y: 3.8, "text-anchor": "middle", textLength: text.length > 26 ? width - 14 : null }, words(text)),
  );
  if (FAILURES.has(edge.type)) group.classList.add("failure");
  showTaken(group, edge);
  return group;
}

/** The frame around what a scatter repeats, with two sheets behind it. */
export function frame(group, box) {
  const { x, y, width, height } = box;
  const element = svg("g", { class: "graph-frame", transform: `translate(${x} ${y})` });
  for (const [behind, name] of [[10, "far"], [5, "near"], [0, "front"]]) {
    element.append(svg("rect", { class: `graph-sheet ${name}`, x: behind, y: behind, width, height, rx: 14 }));
  }
  element.append(svg("g", { class: "graph-count" }));
  showCount(element, group, box);
  return element;
}

export function showCount(element, group, box) {
  const text = clipped(group.badge || "for each item", box.width - 40, `500 11px ${family()}`);
  const width = widthOf(text, `500 11px ${family()}`) + 18;
  element.querySelector(".graph-count").replaceChildren(
    svg("rect", { x: 12, y: -10, width, height: 20, rx: 10 }),
    svg("text", { x: 21, y: 4 }, text),
  );
}
