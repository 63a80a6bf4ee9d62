/**
 * The layout of one level: boxes of given sizes and the links between them, top down. Knows nothing of steps;
 * `layout.js` calls it once for the workflow and once for the body of each scatter.
 */

import { centres } from "./coordinates.js";
import { ordered } from "./order.js";
import { backLinks, ranks } from "./ranks.js";

const NODE_GAP = 28;
const BEND_GAP = 16;
const ROW_GAP = 48;
const LABEL_LINE = 24;
/** Words beside each other from one box may be so wide together; wider, they stand one below the other. */
const LABELS_ABREAST = 300;
const OUT_SPREAD = 26;
const IN_SPREAD = 14;

/** Bends that are placed one by one. The longest links beyond are drawn without, so that any graph is laid out soon. */
const MAX_BENDS = 6000;

/** Boxes without any link stand in a block of their own when there are more than so many. */
const MAX_LOOSE_IN_ROW = 4;

/**
 * @typedef {{width: number, height: number, pin?: "top"|"bottom"}} Item
 * @typedef {{from: number, to: number, fromX?: number, toX?: number, words?: number}} Link
 *   `fromX` and `toX` fix where it leaves and enters, from the centre of the box; `words` is how wide its words are.
 * @param {Item[]} items
 * @param {Link[]} links no link from an item to itself
 * @returns {{width: number, height: number, x: number[], y: number[], routes: {points: number[][], backward: boolean}[]}}
 *   left and upper border of each item, and for each link its points from its source to its target
 */
export function layoutLevel(items, links) {
  const linked = new Set(links.flatMap((link) => [link.from, link.to]));
  const loose = items.map((_, index) => index).filter((index) => !linked.has(index));
  const apart = loose.length > MAX_LOOSE_IN_ROW ? new Set(loose) : new Set();
  const kept = items.map((_, index) => index).filter((index) => !apart.has(index));
  const place = new Map(kept.map((index, at) => [index, at]));
  const inner = links.map((link) => ({ ...link, from: place.get(link.from), to: place.get(link.to) }));
  const level = connected(kept.map((index) => items[index]), inner);
  const x = new Array(items.length).fill(0);
  const y = new Array(items.length).fill(0);
  kept.forEach((index, at) => {
    x[index] = level.x[at];
    y[index] = level.y[at];
  });
  const size = apart.size ? block(items, [...apart], level, x, y) : level;
  return { width: size.width, height: size.height, x, y, routes: level.routes };
}

function block(items, loose, level, x, y) {
  const columns = Math.ceil(Math.sqrt(loose.length));
  const wide = Math.max(...loose.map((index) => items[index].width)) + NODE_GAP;
  const high = Math.max(...loose.map((index) => items[index].height)) + ROW_GAP / 2;
  const top = level.height ? level.height + ROW_GAP : 0;
  loose.forEach((index, at) => {
    x[index] = (at % columns) * wide;
    y[index] = top + Math.floor(at / columns) * high;
  });
  const rows = Math.ceil(loose.length / columns);
  return {
    width: Math.max(level.width, Math.min(columns, loose.length) * wide - NODE_GAP),
    height: top + rows * high - ROW_GAP / 2,
  };
}

function connected(items, links) {
  if (!items.length) return { width: 0, height: 0, x: [], y: [], routes: [] };
  const pairs = links.map((link) => [link.from, link.to]);
  const back = backLinks(items.length, pairs);
  const down = pairs.map((pair, index) => (back[index] ? [pair[1], pair[0]] : pair));
  const rank = ranks(items.length, down, items.map((item) => item.pin ?? null));
  const net = withBends(items, down, rank);
  net.layers = ordered(net);
  const gap = (a, b) => (net.bend[a] || net.bend[b] ? BEND_GAP : NODE_GAP);
  const centre = centres(net, gap);
  const rows = rowsOf(net, items, links, back, centre);
  const routes = routesOf(net, items, links, back, centre, rows);
  const y = items.map((_, index) => rows.top[net.rank[index]]);
  const last = rows.top.length - 1;
  const right = net.width.reduce((most, width, node) => Math.max(most, centre[node] + width / 2), 0);
  return {
    width: right,
    height: rows.top[last] + rows.height[last],
    x: items.map((item, index) => centre[index] - item.width / 2),
    y,
    routes,
  };
}

/** Items and, for links over several rows, one bend per row between. Bends have the numbers after the items. */
function withBends(items, pairs, rank) {
  const ranked = [...rank];
  const chains = pairs.map(() => []);
  const spans = pairs.map(([from, to], index) => ({ index, span: rank[to] - rank[from] }));
  let budget = MAX_BENDS;
  for (const { index, span } of spans.sort((a, b) => a.span - b.span || a.index - b.index)) {
    if (span < 2 || span - 1 > budget) continue;
    budget -= span - 1;
    for (let row = rank[pairs[index][0]] + 1; row < rank[pairs[index][1]]; row += 1) {
      chains[index].push(ranked.length);
      ranked.push(row);
    }
  }
  const count = ranked.length;
  const up = Array.from({ length: count }, () => []);
  const down = Array.from({ length: count }, () => []);
  pairs.forEach(([from, to], index) => {
    const stops = [from, ...chains[index], to];
    for (let i = 1; i < stops.length; i += 1) {
      if (ranked[stops[i]] !== ranked[stops[i - 1]] + 1) continue;
      down[stops[i - 1]].push(stops[i]);
      up[stops[i]].push(stops[i - 1]);
    }
  });
  const bend = Uint8Array.from({ length: count }, (_, node) => (node < items.length ? 0 : 1));
  const width = Float64Array.from({ length: count }, (_, node) => (node < items.length ? items[node].width : 2));
  return { rank: ranked, chains, up, down, bend, width, layers: firstOrder(ranked, down, up) };
}

/** Depth first from the top, in the order given: what belongs together begins side by side. */
function firstOrder(rank, down, up) {
  const layers = Array.from({ length: Math.max(...rank) + 1 }, () => []);
  const seen = new Uint8Array(rank.length);
  const starts = rank.map((_, node) => node).sort((a, b) => rank[a] - rank[b] || a - b);
  for (const start of starts) {
    const stack = [start];
    while (stack.length) {
      const node = stack.pop();
      if (seen[node] || (node !== start && up[node].length === 0)) continue;
      seen[node] = 1;
      layers[rank[node]].push(node);
      for (const next of [...down[node]].reverse()) stack.push(next);
    }
  }
  return layers;
}

/** Rows are as high as their highest box; further apart where links go far to the side, or carry words. */
function rowsOf(net, items, links, back, centre) {
  const count = net.layers.length;
  const height = new Array(count).fill(0);
  items.forEach((item, index) => (height[net.rank[index]] = Math.max(height[net.rank[index]], item.height)));
  const gap = new Array(count).fill(ROW_GAP);
  net.down.forEach((list, node) => {
    for (const other of list) {
      const aside = Math.abs(centre[other] - centre[node]);
      gap[net.rank[node]] = Math.max(gap[net.rank[node]], Math.min(150, ROW_GAP + aside * 0.04));
    }
  });
  const words = items.map(() => []);
  links.forEach((link, index) => link.words && words[back[index] ? link.to : link.from].push(link.words));
  words.forEach((widths, item) => {
    if (!widths.length) return;
    const lines = widths.reduce((sum, width) => sum + width, 0) > LABELS_ABREAST ? widths.length : 1;
    gap[net.rank[item]] = Math.max(gap[net.rank[item]], ROW_GAP + Math.min(lines, 8) * LABEL_LINE);
  });
  const top = [0];
  for (let row = 1; row < count; row += 1) top[row] = top[row - 1] + height[row - 1] + gap[row - 1];
  return { top, height };
}

function routesOf(net, items, links, back, centre, rows) {
  const ends = links.map((link, index) => (back[index]
    ? { from: link.to, to: link.from, fromX: link.toX, toX: link.fromX }
    : link));
  const head = (index) => centre[net.chains[index][0]] ?? centre[ends[index].to] + (ends[index].toX ?? 0);
  const tail = (index) => centre[net.chains[index].at(-1)] ?? centre[ends[index].from] + (ends[index].fromX ?? 0);
  const fromPort = ports(items, ends, "from", head, centre, OUT_SPREAD);
  const toPort = ports(items, ends, "to", tail, centre, IN_SPREAD);
  return ends.map((end, index) => {
    const row = net.rank[end.from];
    const points = [[fromPort[index], rows.top[row] + items[end.from].height]];
    if (items[end.from].height < rows.height[row]) points.push([fromPort[index], rows.top[row] + rows.height[row]]);
    for (const bend of net.chains[index]) {
      const top = rows.top[net.rank[bend]];
      points.push([centre[bend], top], [centre[bend], top + rows.height[net.rank[bend]]]);
    }
    points.push([toPort[index], rows.top[net.rank[end.to]]]);
    return { points: back[index] ? points.reverse() : points, backward: back[index] };
  });
}

/**
 * Where the links leave (or enter) each box, in the order of where they go, so that they do not cross at the box. A
 * link that can go straight down leaves in the middle.
 */
function ports(items, ends, side, towards, centre, spread) {
  const own = items.map(() => []);
  ends.forEach((end, index) => own[end[side]].push(index));
  const port = new Array(ends.length);
  own.forEach((list, item) => {
    const free = list.filter((index) => ends[index][`${side}X`] === undefined);
    for (const index of list) port[index] = centre[item] + (ends[index][`${side}X`] ?? 0);
    free.sort((a, b) => towards(a) - towards(b) || a - b);
    const straight = free.findIndex((index) => Math.abs(towards(index) - centre[item]) < 1);
    const middle = straight >= 0 ? straight : (free.length - 1) / 2;
    const arms = Math.max(middle, free.length - 1 - middle);
    const step = arms ? Math.min(spread, (items[item].width * 0.42) / arms) : 0;
    free.forEach((index, at) => (port[index] = centre[item] + (at - middle) * step));
  });
  return port;
}
