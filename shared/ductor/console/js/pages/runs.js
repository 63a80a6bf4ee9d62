import { h } from "../dom.js";
export function render() { return { element: h("div", { class: "page" }, h("h1", null, "Runs")) }; }
