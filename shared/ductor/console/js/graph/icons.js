/** Our own line icons of the step types, on a 20 × 20 grid. */

import { svg } from "../dom.js";

/** Per step type its lines. */
export const TYPE_ICONS = {
  action: "M11 2.5 4.5 11h4.7L8.6 17.5 15.5 8.6h-5z",
  dataflow: "M3 5h5l4 10h5M3 15h5l1-2.5M11 7.5 12 5h5M15 3l2 2-2 2M15 13l2 2-2 2",
  condition: "M10 2.5 17.5 10 10 17.5 2.5 10zM8.3 8.2a1.8 1.8 0 1 1 2.6 1.6c-.6.3-.9.7-.9 1.3M10 13.2v.1",
  wait: "M5 2.8h10M5 17.2h10M6 3c0 4 3 5 4 7 1-2 4-3 4-7M6 17c0-4 3-5 4-7 1 2 4 3 4 7",
  wait_event: "M10 10.2v.1M7.2 13a4 4 0 0 1 0-5.8M12.8 7.2a4 4 0 0 1 0 5.8M4.6 15.6a7.6 7.6 0 0 1 0-11M15.4 4.6a7.6 7.6 0 0 1 0 11",
  event_set: "M3.5 5.2l1.4 1.4 2.4-2.8M3.5 11.2l1.4 1.4 2.4-2.8M10.5 5.5h6M10.5 11.2h6M4 16.5h2.5M10.5 16.5h6",
  digest: "M3 4h14M5 8h10M7.5 12h5M10 12v5M8 15l2 2 2-2",
  approval: "M10 9a3 3 0 1 0 0-6 3 3 0 0 0 0 6M4 17c0-3.4 2.4-5.6 5.4-5.6M11.5 14.6l1.9 1.9 3.6-4",
  scatter: "M10 3v4M10 7 4 12v4M10 7v9M10 7l6 5v4M2.7 14.5 4 16.2l1.3-1.7M8.7 14.5 10 16.2l1.3-1.7M14.7 14.5l1.3 1.7 1.3-1.7",
  gather: "M4 3.5V8l6 4.5L16 8V3.5M10 3.5v13M8.4 14.8l1.6 1.9 1.6-1.9",
  race: "M4 17.5V3M4 3.8c4-2 7 2 12 0v7.4c-5 2-8-2-12 0M8 3.4v7.3M12 4.2v7.3M4 7.5c4-2 7 2 12 0",
  subworkflow: "M3 3h6v5H3zM11 12h6v5h-6zM6 8v6.5h5M9 12.7l2 1.8-2 1.8",
  ai_action: "M10 2.5c.6 4.4 2.6 6.4 7 7-4.4.6-6.4 2.6-7 7-.6-4.4-2.6-6.4-7-7 4.4-.6 6.4-2.6 7-7M16 14.5v3M14.5 16h3",
  ai_agent: "M4.5 7.5h11v8h-11zM10 7.5V4.2M10 4.2a.6.6 0 1 0 0-1.2.6.6 0 0 0 0 1.2M7.7 11v1M12.3 11v1M2.5 10.5v2.5M17.5 10.5v2.5",
  bridge: "M2.5 14.5h15M2.5 10.5c3 0 5-2 5-5.5M17.5 10.5c-3 0-5-2-5-5.5M7.5 5v9.5M12.5 5v9.5M10 8.9v5.6",
};

/**
 * @param {string} type a step type; an unknown one has the icon of an action
 * @param {{x?: number, y?: number, size?: number}} [where] inside another SVG; without it, for running text
 * @returns {SVGElement} hidden from screen readers: the word stands beside it
 */
export function typeIcon(type, { x, y, size = 18 } = {}) {
  const lines = Object.hasOwn(TYPE_ICONS, type) ? TYPE_ICONS[type] : TYPE_ICONS.action;
  const place = { x, y, width: size, height: size, viewBox: "0 0 20 20", "aria-hidden": "true" };
  return svg("svg", { class: "type-icon", ...place }, svg("path", { d: lines }));
}
