/** The order of the nodes within each row: barycenter sweeps that keep the best order they have seen. */

const SWEEPS = 24;
const PATIENCE = 5;

/**
 * @param {{layers: number[][], up: number[][], down: number[][]}} rows neighbours in the row above and below
 * @returns {number[][]} the rows in a better order. The same rows give the same order.
 */
export function ordered({ layers, up, down }) {
  const segments = down.reduce((sum, list) => sum + list.length, 0);
  const sweeps = segments > 8000 ? 8 : SWEEPS;
  let current = layers.map((layer) => [...layer]);
  const pos = new Float64Array(up.length);
  number(current, pos);
  let best = current.map((layer) => [...layer]);
  let fewest = crossings(current, down, pos);
  for (let sweep = 0, idle = 0; sweep < sweeps && fewest > 0 && idle < PATIENCE; sweep += 1) {
    const downward = sweep % 2 === 0;
    const bias = sweep % 4 >= 2;
    const rows = current.keys();
    for (const row of downward ? rows : [...rows].reverse()) sortRow(current[row], downward ? up : down, pos, bias);
    const now = crossings(current, down, pos);
    idle = now < fewest ? 0 : idle + 1;
    if (now < fewest) {
      fewest = now;
      best = current.map((layer) => [...layer]);
    }
  }
  if (segments <= 3000 && fewest > 0) swapNeighbours(best, up, down, pos);
  return best;
}

function number(layers, pos) {
  for (const layer of layers) layer.forEach((node, index) => (pos[node] = index));
}

/** Nodes with neighbours are sorted by the mean of their places; the others stay where they are. */
function sortRow(layer, neighbours, pos, bias) {
  const movable = [];
  const weight = new Map();
  for (const node of layer) {
    const list = neighbours[node];
    if (!list.length) continue;
    weight.set(node, list.reduce((sum, other) => sum + pos[other], 0) / list.length);
    movable.push(node);
  }
  const sign = bias ? -1 : 1;
  movable.sort((a, b) => weight.get(a) - weight.get(b) || sign * (pos[a] - pos[b]));
  let next = 0;
  for (let index = 0; index < layer.length; index += 1) {
    if (weight.has(layer[index])) layer[index] = movable[next++];
  }
  layer.forEach((node, index) => (pos[node] = index));
}

/** How many edges cross, counted between each two rows with a tree of prefix sums. */
export function crossings(layers, down, pos) {
  number(layers, pos);
  let total = 0;
  for (let row = 0; row + 1 < layers.length; row += 1) {
    const size = layers[row + 1].length;
    const tree = new Int32Array(size + 1);
    let seen = 0;
    for (const node of layers[row]) {
      const ends = down[node].map((other) => pos[other]);
      for (const end of ends) {
        let upTo = 0;
        for (let i = end + 1; i > 0; i -= i & -i) upTo += tree[i];
        total += seen - upTo;
      }
      for (const end of ends) for (let i = end + 1; i <= size; i += i & -i) tree[i] += 1;
      seen += ends.length;
    }
  }
  return total;
}

/** Two neighbours change places where that leaves fewer crossings; ends when none does. */
function swapNeighbours(layers, up, down, pos) {
  number(layers, pos);
  for (let round = 0, improved = true; improved && round < 8; round += 1) {
    improved = false;
    for (const layer of layers) {
      for (let i = 0; i + 1 < layer.length; i += 1) {
        const [a, b] = [layer[i], layer[i + 1]];
        const gain = pairCrossings(a, b, up, pos) + pairCrossings(a, b, down, pos)
          - pairCrossings(b, a, up, pos) - pairCrossings(b, a, down, pos);
        if (gain <= 0) continue;
        [layer[i], layer[i + 1]] = [b, a];
        [pos[a], pos[b]] = [i + 1, i];
        improved = true;
      }
    }
  }
}

function pairCrossings(left, right, neighbours, pos) {
  let count = 0;
  for (const a of neighbours[left]) for (const b of neighbours[right]) if (pos[a] > pos[b]) count += 1;
  return count;
}
