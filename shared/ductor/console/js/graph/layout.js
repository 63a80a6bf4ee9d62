/**
 * Where the steps and edges of a workflow stand: a layered layout, top down. Pure: the same graph gives the same
 * picture, and statuses are no part of it.
 */

import { layoutLevel } from "./level.js";
import { labelOf, labelPlaces, labelWidth, pathOf } from "./routes.js";

export const NODE_WIDTH = 228;
export const NODE_HEIGHT = 58;

const FRAME_SIDE = 18;
/** What a frame leaves free for the sheets that lie behind it. */
const FRAME_STACK = 12;

/**
 * @typedef {{id: string, gather: string, parent: string|null, members: string[]}} Group see `scopes.js`
 * @typedef {{x: number, y: number, width: number, height: number}} Box
 * @param {{id: string}[]} nodes
 * @param {{source: string, target: string, type?: string, condition?: string}[]} edges
 * @param {Group[]} groups
 * @returns {{width: number, height: number, nodes: Map<string, Box>, groups: Map<string, Box>,
 *   edges: {index: number, points: number[][], path: string, label: {x: number, y: number}|null, backward: boolean}[]}}
 *   `index` is the place in `edges`. No boxes overlap but those of a group and what is in it; every edge runs downwards,
 *   except `backward` ones, which close a circle. Edges with an unknown end, and from a step to itself, are left out.
 */
export function layout(nodes, edges, groups = []) {
  const region = new Map(nodes.map((node) => [node.id, null]));
  for (const group of groups) for (const member of group.members) region.set(member, group.id);
  const drawn = edges
    .map((edge, index) => ({ ...edge, index, words: labelOf(edge) ? labelWidth(labelOf(edge)) : 0 }))
    .filter((edge) => region.has(edge.source) && region.has(edge.target) && edge.source !== edge.target);
  const root = level(null, { nodes, edges: drawn, groups, region });
  const result = { width: root.width, height: root.height, nodes: new Map(), groups: new Map(), edges: [] };
  const pieces = new Map(drawn.map((edge) => [edge.index, []]));
  put(root, 0, 0, result, pieces);
  for (const edge of drawn) result.edges.push(joined(edge.index, pieces.get(edge.index)));
  labelPlaces(result.edges, drawn, edges);
  return result;
}

/** One level with the levels inside it already laid out. `crossing` are the edges over the border of its frame. */
function level(id, graph) {
  const inside = graph.groups.filter((group) => group.parent === id).map((group) => level(group.id, graph));
  const items = [];
  const place = new Map();
  for (const node of graph.nodes) {
    if (graph.region.get(node.id) !== id) continue;
    place.set(node.id, items.length);
    items.push({ width: NODE_WIDTH, height: NODE_HEIGHT, node: node.id });
  }
  const frames = new Map();
  for (const child of inside) {
    frames.set(child.id, items.length);
    items.push({ width: child.width + 2 * (FRAME_SIDE + FRAME_STACK), height: child.height + FRAME_STACK, child });
  }
  const links = [];
  for (const edge of graph.edges) {
    const link = linkOf(edge, id, { place, frames, items, region: graph.region });
    if (link) links.push(link);
  }
  return { id, items, links, ...layoutLevel(items, links) };
}

function linkOf(edge, id, { place, frames, items, region }) {
  const [source, target] = [region.get(edge.source), region.get(edge.target)];
  const link = { edge: edge.index, words: edge.words };
  if (source === id && target === id) return { ...link, from: place.get(edge.source), to: place.get(edge.target) };
  if (source === id && frames.has(target)) {
    const to = frames.get(target);
    return { ...link, from: place.get(edge.source), to, toX: borderX(items[to], edge.index) };
  }
  if (target === id && frames.has(source)) {
    const from = frames.get(source);
    return { ...link, from, fromX: borderX(items[from], edge.index), to: place.get(edge.target), words: 0 };
  }
  if (target === id) {
    items.push({ width: 2, height: 0, pin: "top", border: edge.index });
    return { ...link, from: items.length - 1, to: place.get(edge.target), words: 0 };
  }
  if (source === id) {
    items.push({ width: 2, height: 0, pin: "bottom", border: edge.index });
    return { ...link, from: place.get(edge.source), to: items.length - 1 };
  }
  return null;
}

/** Where an edge passes the border of a frame, from the middle of the frame. */
function borderX(item, edge) {
  const at = item.child.items.findIndex((inner) => inner.border === edge);
  return FRAME_STACK + FRAME_SIDE + item.child.x[at] + 1 - item.width / 2;
}

function put(own, left, top, result, pieces) {
  own.links.forEach((link, index) => {
    const { points, backward } = own.routes[index];
    pieces.get(link.edge).push({ points: points.map(([x, y]) => [x + left, y + top]), backward });
  });
  own.items.forEach((item, index) => {
    const [x, y] = [left + own.x[index], top + own.y[index]];
    if (item.node !== undefined) result.nodes.set(item.node, { x, y, width: NODE_WIDTH, height: NODE_HEIGHT });
    if (!item.child) return;
    const box = { x: x + FRAME_STACK, y, width: item.width - 2 * FRAME_STACK, height: item.child.height };
    result.groups.set(item.child.id, box);
    put(item.child, x + FRAME_STACK + FRAME_SIDE, y, result, pieces);
  });
}

/** The pieces of an edge inside and outside of a frame, from its source to its target. */
function joined(index, pieces) {
  const ascending = [...pieces].sort((a, b) => a.points[0][1] - b.points[0][1]);
  const points = ascending.flatMap((piece) => piece.points);
  return { index, points, path: pathOf(points), label: null, backward: pieces.some((piece) => piece.backward) };
}
