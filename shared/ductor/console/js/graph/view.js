/**
 * A workflow graph on the page: SVG with pan and zoom, steps that can be chosen by pointer and keyboard. It draws what it
 * is given and asks for nothing.
 */

import { h, svg } from "../dom.js";
import { card, edgeLabel, edgeLine, frame, showCount, showState, showTaken } from "./cards.js";
import { layout } from "./layout.js";
import { minimap } from "./minimap.js";
import { nextNode } from "./walking.js";
import { viewport } from "./viewport.js";

const KEYS = { ArrowDown: "down", ArrowUp: "up", ArrowLeft: "left", ArrowRight: "right", Home: "first", End: "last" };

/**
 * @typedef {{id: string, title?: string, type: string, subtitle?: string, status?: string, badge?: string, tone?: string}} GraphNode
 *   `badge` is a short text; `tone` (of `styles/tokens.css`) overrules the colour of the state
 * @typedef {{source: string, target: string, type?: string, condition?: string, taken?: boolean}} GraphEdge
 * @typedef {{id: string, gather: string, parent: string|null, members: string[], badge?: string}} GraphGroup
 * @param {object} given
 * @param {GraphNode[]} given.nodes
 * @param {GraphEdge[]} given.edges
 * @param {GraphGroup[]} [given.groups] from `scatterGroups`; `badge` is what its frame says, for example "3 of 10 items"
 * @param {(id: string|null) => void} [given.onSelect] null when the empty ground was clicked
 * @param {string|null} [given.selected]
 * @param {string} [given.label] what the graph is, for screen readers
 * @returns {HTMLElement & {update: (partial: object) => void, fit: () => void, reveal: (id: string) => void}} `update`
 *   takes any of the fields; as long as steps, edges and groups stay the same only states are drawn anew, and nothing moves.
 */
export function graphView(given) {
  const state = { nodes: [], edges: [], groups: [], selected: null, onSelect: () => {}, ...given };
  const parts = { nodes: new Map(), edges: [], labels: [], groups: new Map() };
  const world = svg("g");
  const canvas = svg("svg", { class: "graph-canvas", role: "group", "aria-label": state.label ?? "Workflow graph" }, world);
  const empty = h("p", { class: "graph-empty" }, "No steps yet");
  const root = h("div", { class: "graph" }, canvas, empty);
  let shape = "";
  let places = null;
  let framed = false;
  let again = frameOnce;
  const view = viewport(root, ({ x, y, scale }) => {
    world.setAttribute("transform", `translate(${x} ${y}) scale(${scale})`);
    root.classList.toggle("far", scale < 0.3);
    map.look({ x, y, scale }, { width: root.clientWidth, height: root.clientHeight });
  });
  const map = minimap(view.centre);
  root.append(map.element, toolbar(view, fitAll));

  function draw() {
    const next = JSON.stringify([
      state.nodes.map((node) => [node.id, node.type]),
      state.edges.map((edge) => [edge.source, edge.target, edge.type, edge.condition]),
      state.groups.map((group) => [group.id, group.parent, group.members]),
    ]);
    if (next !== shape) {
      shape = next;
      arrange();
    } else refresh();
    map.tones(parts.nodes);
    mark();
  }

  function arrange() {
    const focused = world.contains(document.activeElement) ? document.activeElement.dataset.id : null;
    places = layout(state.nodes, state.edges, state.groups);
    parts.nodes = new Map();
    parts.groups = new Map();
    const byDepth = [...state.groups].sort((a, b) => area(b) - area(a));
    for (const group of byDepth) parts.groups.set(group.id, frame(group, places.groups.get(group.id)));
    parts.edges = places.edges.map((route) => edgeLine(state.edges[route.index], route));
    parts.labels = places.edges.map((route) => edgeLabel(state.edges[route.index], route));
    for (const node of state.nodes) parts.nodes.set(node.id, card(node, places.nodes.get(node.id)));
    world.replaceChildren(
      ...parts.groups.values(),
      ...parts.edges,
      ...parts.labels.filter(Boolean),
      ...parts.nodes.values(),
    );
    empty.hidden = state.nodes.length > 0;
    view.setSize(places);
    map.arrange(places);
    if (framed) map.look(view.get(), { width: root.clientWidth, height: root.clientHeight });
    if (!framed && root.clientWidth) frameOnce();
    if (focused) parts.nodes.get(focused)?.focus({ preventScroll: true });
  }

  const area = (group) => {
    const box = places.groups.get(group.id);
    return box.width * box.height;
  };

  function refresh() {
    for (const node of state.nodes) showState(parts.nodes.get(node.id), node, places.nodes.get(node.id));
    for (const group of state.groups) showCount(parts.groups.get(group.id), group, places.groups.get(group.id));
    places.edges.forEach((route, at) => {
      showTaken(parts.edges[at], state.edges[route.index]);
      if (parts.labels[at]) showTaken(parts.labels[at], state.edges[route.index]);
    });
  }

  /** One step can be reached by Tab: the chosen one, or the first. */
  function mark() {
    const reachable = parts.nodes.has(state.selected) ? state.selected : state.nodes[0]?.id;
    for (const [id, element] of parts.nodes) {
      element.classList.toggle("selected", id === state.selected);
      element.setAttribute("aria-pressed", String(id === state.selected));
      element.setAttribute("tabindex", id === reachable ? "0" : "-1");
    }
    for (const element of parts.edges) {
      const near = [element.dataset.source, element.dataset.target].includes(state.selected);
      element.classList.toggle("near", near);
    }
  }

  function select(id) {
    state.selected = id;
    mark();
    state.onSelect(id);
  }

  function go(id) {
    const element = parts.nodes.get(id);
    if (!element) return;
    select(id);
    view.reveal(places.nodes.get(id));
    element.focus({ preventScroll: true });
  }

  function frameOnce() {
    framed = true;
    view.fit(places.nodes.get(state.selected ?? state.nodes[0]?.id) ?? null);
    if (parts.nodes.has(state.selected)) view.reveal(places.nodes.get(state.selected));
    again = frameOnce;
  }

  function fitAll() {
    view.fit();
    again = fitAll;
  }

  /** A panel opens beside it, the window changes: what was fitted is fitted anew, what somebody moved stays, but for the chosen step. */
  function resized() {
    if (!places || !root.clientWidth) return;
    if (!framed) frameOnce();
    else if (view.fitted()) again();
    else if (parts.nodes.has(state.selected)) view.reveal(places.nodes.get(state.selected));
  }

  canvas.addEventListener("click", (event) => {
    if (view.dragged()) return;
    const id = event.target.closest(".graph-node")?.dataset.id ?? null;
    if (id !== null) parts.nodes.get(id).focus({ preventScroll: true });
    if (id !== state.selected) select(id);
  });
  root.addEventListener("keydown", (event) => {
    const id = event.target.closest?.(".graph-node")?.dataset.id;
    if (event.key === "+" || event.key === "=") view.zoom(1.25);
    else if (event.key === "-") view.zoom(0.8);
    else if (event.key === "0") fitAll();
    else if (event.altKey || event.ctrlKey || event.metaKey || id === undefined) return;
    else if (event.key === "Enter" || event.key === " ") select(id);
    else if (event.key === "Escape") select(null);
    else if (KEYS[event.key]) go(nextNode(id, KEYS[event.key], state, places));
    else return;
    event.preventDefault();
  });
  new ResizeObserver(resized).observe(root);
  draw();
  return Object.assign(root, {
    update(partial) {
      Object.assign(state, partial);
      draw();
      if (partial.selected && parts.nodes.has(partial.selected) && framed) view.reveal(places.nodes.get(partial.selected));
    },
    fit: fitAll,
    reveal: (id) => places.nodes.has(id) && view.reveal(places.nodes.get(id)),
  });
}

function toolbar(view, fitAll) {
  const tool = (text, label, act) => h("button", { type: "button", title: label, "aria-label": label, onclick: act }, text);
  return h("div", { class: "graph-tools" },
    tool("+", "Zoom in (+)", () => view.zoom(1.25)),
    tool("−", "Zoom out (-)", () => view.zoom(0.8)),
    tool("Fit", "Show the whole graph (0)", fitAll));
}
