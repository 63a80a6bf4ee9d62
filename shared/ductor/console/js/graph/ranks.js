/** Which row a node stands in. Every edge leads to a lower row, except those that close a circle. */

/**
 * @param {number} count nodes are 0 … count-1
 * @param {[number, number][]} links
 * @returns {boolean[]} per link: whether it leads back to a node that it came from (a draft may hold circles)
 */
export function backLinks(count, links) {
  const out = adjacency(count, links);
  const state = new Uint8Array(count);
  const back = links.map(([from, to]) => from === to);
  for (let root = 0; root < count; root += 1) {
    if (state[root]) continue;
    const stack = [[root, 0]];
    state[root] = 1;
    while (stack.length) {
      const top = stack.at(-1);
      const index = out[top[0]][top[1]];
      top[1] += 1;
      if (index === undefined) {
        state[top[0]] = 2;
        stack.pop();
        continue;
      }
      const next = links[index][1];
      if (state[next] === 1) back[index] = true;
      else if (state[next] === 0) {
        state[next] = 1;
        stack.push([next, 0]);
      }
    }
  }
  return back;
}

/**
 * Longest path from the top, then nodes that lead to more than leads to them move down to what they lead to, so that
 * edges are short.
 * @param {number} count
 * @param {[number, number][]} links without circles
 * @param {("top"|"bottom"|null)[]} pins
 * @returns {Int32Array} the row of each node, from 0, without empty rows
 */
export function ranks(count, links, pins) {
  const out = adjacency(count, links);
  const into = new Int32Array(count);
  for (const [, to] of links) into[to] += 1;
  const waiting = Int32Array.from(into);
  const order = [];
  for (let node = 0; node < count; node += 1) if (!waiting[node]) order.push(node);
  const rank = new Int32Array(count);
  for (const node of order) {
    for (const index of out[node]) {
      const to = links[index][1];
      rank[to] = Math.max(rank[to], rank[node] + 1);
      waiting[to] -= 1;
      if (!waiting[to]) order.push(to);
    }
  }
  for (const node of order.reverse()) {
    if (pins[node] || !out[node].length || out[node].length <= into[node]) continue;
    rank[node] = Math.min(...out[node].map((index) => rank[links[index][1]])) - 1;
  }
  return withoutGaps(rank, pins);
}

function withoutGaps(rank, pins) {
  if (pins.includes("bottom")) {
    const last = rank.reduce((most, value, node) => (pins[node] === "bottom" ? most : Math.max(most, value)), 0) + 1;
    pins.forEach((pin, node) => pin === "bottom" && (rank[node] = last));
  }
  const used = [...new Set(rank)].sort((a, b) => a - b);
  const place = new Map(used.map((value, index) => [value, index]));
  return rank.map((value) => place.get(value));
}

function adjacency(count, links) {
  const out = Array.from({ length: count }, () => []);
  links.forEach(([from], index) => out[from].push(index));
  return out;
}
