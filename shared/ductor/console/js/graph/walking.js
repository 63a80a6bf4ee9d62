/** Which step an arrow key leads to. */

/**
 * @param {string} id
 * @param {"up"|"down"|"left"|"right"|"first"|"last"} way up and down follow edges, left and right stay on the row
 * @param {{nodes: {id: string}[], edges: {source: string, target: string, taken?: boolean}[]}} graph
 * @param {{nodes: Map<string, {x: number, y: number}>}} places
 * @returns {string|undefined} undefined where there is nothing
 */
export function nextNode(id, way, graph, places) {
  if (way === "first") return graph.nodes[0]?.id;
  if (way === "last") return graph.nodes.at(-1)?.id;
  const here = places.nodes.get(id);
  if (way === "down" || way === "up") {
    const [from, to] = way === "down" ? ["source", "target"] : ["target", "source"];
    const edges = graph.edges.filter((edge) => edge[from] === id && edge[to] !== id && places.nodes.has(edge[to]));
    const taken = edges.filter((edge) => edge.taken);
    return nearest((taken.length ? taken : edges).map((edge) => edge[to]), here, places);
  }
  const beside = [...places.nodes].filter(([other, box]) => other !== id && Math.abs(box.y - here.y) < 1
    && (way === "left" ? box.x < here.x : box.x > here.x));
  return nearest(beside.map(([other]) => other), here, places);
}

function nearest(ids, here, places) {
  const apart = (id) => Math.abs(places.nodes.get(id).x - here.x);
  return [...ids].sort((a, b) => apart(a) - apart(b))[0];
}
