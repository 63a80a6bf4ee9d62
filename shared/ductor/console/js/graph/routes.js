/** From the points of an edge to its line, and where its words stand. */

const round = (value) => Math.round(value * 10) / 10;

/** An SVG path through points: straight where it can be, otherwise an S that leaves and enters vertically. */
export function pathOf(points) {
  let path = `M${round(points[0][0])} ${round(points[0][1])}`;
  for (let i = 1; i < points.length; i += 1) {
    const [x0, y0] = points[i - 1];
    const [x1, y1] = points[i];
    if (Math.abs(x0 - x1) < 0.5 || Math.abs(y0 - y1) < 0.5) {
      path += `L${round(x1)} ${round(y1)}`;
      continue;
    }
    const middle = round((y0 + y1) / 2);
    path += `C${round(x0)} ${middle} ${round(x1)} ${middle} ${round(x1)} ${round(y1)}`;
  }
  return path;
}

const LABEL_HEIGHT = 20;
const LETTER = 6.2;
const MAX_LETTERS = 28;

/** The words of an edge: its type unless that is success, and its condition. Empty when it needs none. */
export function labelOf(edge) {
  const type = edge.type && edge.type !== "success" ? edge.type : "";
  const condition = edge.condition ? String(edge.condition).replace(/\s+/g, " ") : "";
  const words = [type, condition].filter(Boolean).join(": ");
  return words.length > MAX_LETTERS ? `${words.slice(0, MAX_LETTERS - 1)}…` : words;
}

/** About how wide the words of an edge are drawn. */
export const labelWidth = (words) => words.length * LETTER + 14;

/**
 * Gives each edge with words the place for them: on its first piece that has a height, moved along it while it would
 * lie on another one.
 */
export function labelPlaces(routes, drawn, edges) {
  const taken = [];
  routes.forEach((route, at) => {
    const words = labelOf(edges[drawn[at].index]);
    if (!words) return;
    const [from, to] = steepPiece(route.points);
    const width = labelWidth(words);
    let choice = null;
    for (const t of [0.5, 0.36, 0.64, 0.25, 0.75, 0.1, 0.9]) {
      const box = { ...along(from, to, t), width };
      choice ??= box;
      if (taken.some((other) => overlap(box, other))) continue;
      choice = box;
      break;
    }
    taken.push(choice);
    route.label = { x: choice.x, y: choice.y };
  });
}

function steepPiece(points) {
  for (let i = 1; i < points.length; i += 1) {
    if (Math.abs(points[i][1] - points[i - 1][1]) > 20) return [points[i - 1], points[i]];
  }
  return [points[0], points.at(-1)];
}

/** The point of the S between two points at `t`. */
function along([x0, y0], [x1, y1], t) {
  const s = 1 - t;
  const middle = (y0 + y1) / 2;
  const weights = [s * s * s, 3 * s * s * t, 3 * s * t * t, t * t * t];
  return {
    x: (weights[0] + weights[1]) * x0 + (weights[2] + weights[3]) * x1,
    y: weights[0] * y0 + (weights[1] + weights[2]) * middle + weights[3] * y1,
  };
}

const overlap = (a, b) =>
  Math.abs(a.x - b.x) < (a.width + b.width) / 2 && Math.abs(a.y - b.y) < LABEL_HEIGHT;
