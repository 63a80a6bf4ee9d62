/**
 * The x of every node: the method of Brandes and Köpf. Nodes that can stand straight under each other form blocks;
 * four such arrangements are made (from above and below, from the left and the right) and balanced. Long edges, which
 * are chains of bends without width, stay straight.
 */

/**
 * @param {object} rows
 * @param {number[][]} rows.layers the nodes of each row in their order
 * @param {number[][]} rows.up neighbours in the row above
 * @param {number[][]} rows.down neighbours in the row below
 * @param {Float64Array} rows.width of each node
 * @param {Uint8Array} rows.bend whether a node is only a bend of a long edge
 * @param {(a: number, b: number) => number} gap the distance to keep between two neighbours
 * @returns {Float64Array} the centre of each node, the leftmost border at 0
 */
export function centres(rows, gap) {
  const count = rows.width.length;
  const pos = new Int32Array(count);
  for (const layer of rows.layers) layer.forEach((node, index) => (pos[node] = index));
  const sorted = (lists) => lists.map((list) => [...list].sort((a, b) => pos[a] - pos[b]));
  const up = sorted(rows.up);
  const down = sorted(rows.down);
  const conflicts = conflicting({ ...rows, up, pos });
  const arrangements = [];
  for (const fromAbove of [true, false]) {
    for (const fromLeft of [true, false]) {
      const layers = rows.layers.map((layer) => (fromLeft ? layer : [...layer].reverse()));
      const side = (lists) => (fromLeft ? lists : lists.map((list) => [...list].reverse()));
      const blocks = aligned(fromAbove ? layers : [...layers].reverse(), side(fromAbove ? up : down), conflicts, count);
      const xs = compacted(layers, blocks, rows.width, gap);
      arrangements.push({ fromLeft, xs: fromLeft ? xs : xs.map((x) => -x) });
    }
  }
  return balanced(arrangements, rows.width);
}

/** Pairs that cross a piece of a long edge: these give way. */
function conflicting({ layers, up, bend, pos, width }) {
  const marked = new Set();
  for (let row = 1; row < layers.length; row += 1) {
    const layer = layers[row];
    let from = 0;
    let next = 0;
    layer.forEach((node, index) => {
      const inner = bend[node] ? up[node].find((above) => bend[above]) : undefined;
      if (inner === undefined && index + 1 < layer.length) return;
      const to = inner === undefined ? layers[row - 1].length : pos[inner];
      for (; next <= index; next += 1) {
        for (const above of up[layer[next]]) {
          const outside = pos[above] < from || pos[above] > to;
          if (outside && !(bend[above] && bend[layer[next]])) marked.add(above * width.length + layer[next]);
        }
      }
      from = to;
    });
  }
  return marked;
}

function aligned(layers, neighbours, conflicts, count) {
  const root = Int32Array.from({ length: count }, (_, node) => node);
  const align = Int32Array.from(root);
  const place = new Int32Array(count);
  for (const layer of layers) layer.forEach((node, index) => (place[node] = index));
  const inConflict = (a, b) => conflicts.has(a * count + b) || conflicts.has(b * count + a);
  for (const layer of layers) {
    let last = -1;
    for (const node of layer) {
      const list = neighbours[node];
      const middle = (list.length - 1) / 2;
      for (let i = Math.floor(middle); list.length && i <= Math.ceil(middle); i += 1) {
        const other = list[i];
        if (align[node] !== node || last >= place[other] || inConflict(other, node)) continue;
        align[other] = node;
        root[node] = root[other];
        align[node] = root[node];
        last = place[other];
      }
    }
  }
  return root;
}

/** Blocks as far left as their neighbours allow, then back to the right where there is room. */
function compacted(layers, root, width, gap) {
  const after = new Map();
  const before = new Map();
  for (const layer of layers) {
    for (let i = 0; i < layer.length; i += 1) {
      const own = root[layer[i]];
      if (!after.has(own)) after.set(own, new Map());
      if (!before.has(own)) before.set(own, new Map());
      if (i === 0) continue;
      const left = root[layer[i - 1]];
      const need = (width[layer[i - 1]] + width[layer[i]]) / 2 + gap(layer[i - 1], layer[i]);
      const most = Math.max(need, after.get(left).get(own) ?? 0);
      after.get(left).set(own, most);
      before.get(own).set(left, most);
    }
  }
  const order = sortedBlocks(after, before);
  const x = new Float64Array(root.length);
  for (const block of order) {
    for (const [left, need] of before.get(block)) x[block] = Math.max(x[block], x[left] + need);
  }
  for (const block of order.reverse()) {
    let room = Infinity;
    for (const [right, need] of after.get(block)) room = Math.min(room, x[right] - need);
    if (room !== Infinity) x[block] = Math.max(x[block], room);
  }
  return Float64Array.from(root, (block) => x[block]);
}

function sortedBlocks(after, before) {
  const waiting = new Map([...before].map(([block, lefts]) => [block, lefts.size]));
  const order = [...waiting.keys()].filter((block) => !waiting.get(block));
  for (const block of order) {
    for (const right of after.get(block).keys()) {
      waiting.set(right, waiting.get(right) - 1);
      if (!waiting.get(right)) order.push(right);
    }
  }
  return order;
}

/** The four arrangements moved onto the narrowest; each node at the mean of its two middle places. */
function balanced(arrangements, width) {
  const extent = ({ xs }) => {
    let [low, high] = [Infinity, -Infinity];
    xs.forEach((x, node) => {
      low = Math.min(low, x - width[node] / 2);
      high = Math.max(high, x + width[node] / 2);
    });
    return [low, high];
  };
  const extents = arrangements.map(extent);
  const narrowest = extents.reduce((best, own) => (own[1] - own[0] < best[1] - best[0] ? own : best));
  const shifts = arrangements.map(({ fromLeft }, i) => (fromLeft ? narrowest[0] - extents[i][0] : narrowest[1] - extents[i][1]));
  const middle = Float64Array.from(width, (_, node) => {
    const four = arrangements.map(({ xs }, i) => xs[node] + shifts[i]).sort((a, b) => a - b);
    return (four[1] + four[2]) / 2;
  });
  const low = middle.reduce((least, x, node) => Math.min(least, x - width[node] / 2), Infinity);
  return middle.map((x) => x - low);
}
