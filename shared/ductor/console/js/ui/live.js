// Texts that depend on the present instant: one clock for the whole page, and only while it is seen.

import { h, setText } from "../dom.js";
import { dateTime, relative } from "../format.js";

const texts = new WeakMap();

/** A span whose text is `words()` now and once a second from then on. */
export function live(words, props = {}) {
  const element = h("span", { ...props, "data-tick": true }, words());
  texts.set(element, words);
  return element;
}

/** How long ago, with the exact time on hover. */
export function ago(when) {
  return when ? live(() => relative(when), { title: dateTime(when), class: "nowrap" }) : h("span", { class: "faint" }, "–");
}

/** Brings the texts within an element up to date now. */
export function refreshLive(within) {
  for (const element of within.querySelectorAll("[data-tick]")) {
    const words = texts.get(element);
    if (words) setText(element, words());
  }
}

setInterval(() => {
  if (!document.hidden) refreshLive(document);
}, 1000);
