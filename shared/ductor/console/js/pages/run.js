import { h } from "../dom.js";
export function render({ params }) { return { element: h("div", { class: "page" }, h("h1", null, params.run)) }; }
