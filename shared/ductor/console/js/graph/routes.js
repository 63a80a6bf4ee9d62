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
const MAX_LETTERS = 32;
/** No label is wider. */
const BAND_WIDTH = 230;

/** The words of an edge: its type unless that is success, and its condition. Empty when it needs none. */
export function labelOf(edge) {
  const type = edge.type && edge.type !== "success" ? edge.type : "";
  const condition = edge.condition ? shortened(String(edge.condition).replace(/\s+/g, " "), edge.source) : "";
  const words = [type, condition].filter(Boolean).join(": ");
  return words.length > MAX_LETTERS ? `${words.slice(0, MAX_LETTERS - 1)}…` : words;
}

/** What is plain from where the words stand is left out of them: the output of the edge's own source, the trigger. */
function shortened(condition, source) {
  return condition.replaceAll(`STEPS.${source}.output.`, "output.").replaceAll("TRIGGER.payload.", "payload.");
}

/** About how wide the words of an edge are drawn. */
export const labelWidth = (words) => words.length * LETTER + 14;

const LINE = LABEL_HEIGHT + 3;

/**
 * Gives each edge with words the place for them: in the middle of its first piece that has a height; where they would lie
 * on others, on lines one below the other, each on its own edge.
 */
export function labelPlaces(routes, drawn, edges) {
  const labels = [];
  routes.forEach((route, at) => {
    const words = labelOf(edges[drawn[at].index]);
    if (words) labels.push({ route, source: drawn[at].source, piece: steepPiece(route.points), width: labelWidth(words) });
  });
  const middles = labels.map(({ piece, width }) => ({ ...atHeight(piece, (piece[0][1] + piece[1][1]) / 2), width }));
  const near = inBands(middles);
  const taken = inBands([]);
  const turns = new Map();
  labels.forEach((label, index) => {
    const clash = near.around(middles[index]).some((other) => other !== middles[index] && overlap(other, middles[index]));
    const turn = turns.get(label.source) ?? 0;
    const wanted = clash ? linesOf(label, turn) : [middles[index]];
    if (clash) turns.set(label.source, turn + 1);
    const box = wanted.find((one) => !taken.around(one).some((other) => overlap(one, other))) ?? middles[index];
    taken.add(box);
    label.route.label = { x: box.x, y: box.y };
  });
}

/** Places on the lines of a piece, from the one whose turn it is on. */
function linesOf({ piece, width }, turn) {
  const [[, top], [, bottom]] = piece[0][1] <= piece[1][1] ? piece : [...piece].reverse();
  const count = Math.max(1, Math.floor((bottom - top - 12) / LINE));
  const first = (top + bottom - (count - 1) * LINE) / 2;
  return Array.from({ length: count }, (_, line) => ({ ...atHeight(piece, first + ((line + turn) % count) * LINE), width }));
}

/** Boxes by the height at which they are, so that each is compared with few. */
function inBands(boxes) {
  const bands = new Map();
  const band = (y, x) => `${Math.floor(y / LABEL_HEIGHT)}/${Math.floor(x / BAND_WIDTH)}`;
  const add = (box) => {
    const key = band(box.y, box.x);
    bands.set(key, [...(bands.get(key) ?? []), box]);
  };
  boxes.forEach(add);
  const steps = [-1, 0, 1];
  const around = ({ x, y }) => steps.flatMap((down) => steps.flatMap((right) => bands.get(band(
    y + down * LABEL_HEIGHT,
    x + right * BAND_WIDTH,
  )) ?? []));
  return { add, around };
}

function steepPiece(points) {
  for (let i = 1; i < points.length; i += 1) {
    if (Math.abs(points[i][1] - points[i - 1][1]) > 20) return [points[i - 1], points[i]];
  }
  return [points[0], points.at(-1)];
}

/** The point of the S between two points at a height. */
function atHeight(piece, y) {
  const rising = piece[0][1] > piece[1][1];
  let [low, high] = [0, 1];
  for (let i = 0; i < 20; i += 1) {
    const t = (low + high) / 2;
    if (along(...piece, t).y < y !== rising) low = t;
    else high = t;
  }
  return along(...piece, low);
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
