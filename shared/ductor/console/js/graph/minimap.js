/** The whole graph in a corner, with what is seen of it; a press goes there. Shows only while something is out of sight. */

import { svg } from "../dom.js";

const WIDTH = 168;
const HEIGHT = 110;
const FEWEST = 8;

/**
 * @param {(x: number, y: number) => void} goTo centres a point of the drawing
 * @returns {{element: SVGElement, arrange: (places: object) => void, tones: (nodes: Map<string, SVGElement>) => void,
 *   look: (transform: object, frame: {width: number, height: number}) => void}}
 */
export function minimap(goTo) {
  const cards = svg("g");
  const seen = svg("rect", { class: "graph-seen", rx: 2 });
  const element = svg("svg", { class: "graph-map", width: WIDTH, height: HEIGHT, "aria-hidden": "true" }, cards, seen);
  let places = { width: 1, height: 1, nodes: new Map() };
  let scale = 1;
  let corner = [0, 0];

  function arrange(next) {
    places = next;
    scale = Math.min((WIDTH - 12) / Math.max(1, next.width), (HEIGHT - 12) / Math.max(1, next.height));
    corner = [(WIDTH - next.width * scale) / 2, (HEIGHT - next.height * scale) / 2];
    cards.replaceChildren(...[...next.nodes].map(([id, box]) => svg("rect", {
      dataset: { id }, x: corner[0] + box.x * scale, y: corner[1] + box.y * scale,
      width: Math.max(1.5, box.width * scale), height: Math.max(1.5, box.height * scale), rx: 1,
    })));
  }
  function tones(nodes) {
    for (const card of cards.children) card.dataset.tone = nodes.get(card.dataset.id)?.dataset.tone ?? "none";
  }
  function look({ x, y, scale: zoom }, frame) {
    const box = { x: -x / zoom, y: -y / zoom, width: frame.width / zoom, height: frame.height / zoom };
    const whole = box.x <= 0 && box.y <= 0 && box.x + box.width >= places.width && box.y + box.height >= places.height;
    element.classList.toggle("needed", !whole && places.nodes.size >= FEWEST);
    const numbers = { x: corner[0] + box.x * scale, y: corner[1] + box.y * scale, width: box.width * scale, height: box.height * scale };
    for (const [name, value] of Object.entries(numbers)) seen.setAttribute(name, value);
  }
  element.addEventListener("pointerdown", (event) => {
    event.stopPropagation();
    const box = element.getBoundingClientRect();
    goTo((event.clientX - box.left - corner[0]) / scale, (event.clientY - box.top - corner[1]) / scale);
  });
  return { element, arrange, tones, look };
}
