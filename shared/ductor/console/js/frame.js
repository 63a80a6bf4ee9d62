// The frame around every page: navigation, the colour scheme, who is signed in.

import { h, put } from "./dom.js";
import { session } from "./session.js";
import { button, iconButton } from "./ui/buttons.js";
import { icon } from "./ui/icons.js";

const THEMES = ["auto", "light", "dark"];
const LOOKS = { auto: ["auto", "System theme"], light: ["sun", "Light theme"], dark: ["moon", "Dark theme"] };

/** @returns {{element: HTMLElement, main: HTMLElement, mark: function(string): void}} `mark` shows where one is */
export function frame(routes, { onSignOut }) {
  const links = routes.filter((route) => route.nav).map((route) => h("a", { href: `#${route.pattern}`, dataset: { section: route.pattern } }, icon(route.icon), route.nav));
  const main = h("main", { class: "main", id: "main", tabindex: -1 });
  const side = h("nav", { class: "side", "aria-label": "Main" }, brand(), h("div", { class: "nav" }, links), sideEnd(onSignOut));
  const opener = iconButton("menu", "Menu", { "aria-expanded": "false", onclick: () => toggle(element.dataset.menu !== "open") });
  const element = h("div", { class: "frame" },
    h("a", { class: "skip", href: "#main", onclick: (event) => { event.preventDefault(); main.focus(); } }, "To the content"),
    h("header", { class: "topbar" }, opener, brand()), side,
    h("button", { type: "button", class: "shade", tabindex: -1, "aria-label": "Close the menu", onclick: () => toggle(false) }), main);

  function toggle(open) {
    element.dataset.menu = open ? "open" : "";
    opener.setAttribute("aria-expanded", String(open));
    if (open) links[0]?.focus();
  }
  side.addEventListener("click", (event) => event.target.closest("a") && toggle(false));
  element.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && element.dataset.menu === "open") {
      toggle(false);
      opener.focus();
    }
  });
  function mark(section) {
    for (const link of links) {
      if (link.dataset.section === section) link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
    }
  }
  return { element, main, mark };
}

function brand() {
  return h("a", { class: "brand", href: "#/runs" }, h("img", { src: "icon.svg", alt: "", width: 22, height: 22 }), "Ductor");
}

function sideEnd(onSignOut) {
  return h("div", { class: "side-end" },
    h("div", { class: "cut", title: session()?.tenant }, h("span", { class: "faint" }, "Tenant "), session()?.tenant),
    themeButton(), button("Sign out", { icon: "out", kind: "quiet", onclick: onSignOut }));
}

/** Goes through system, light and dark. */
function themeButton() {
  const root = document.documentElement;
  const made = button("", { kind: "quiet", onclick: () => choose(THEMES[(THEMES.indexOf(root.dataset.theme ?? "auto") + 1) % THEMES.length]) });
  function choose(theme) {
    if (theme === "auto") delete root.dataset.theme;
    else root.dataset.theme = theme;
    try {
      localStorage.setItem("ductor.theme", theme);
    } catch { /* it holds for this page at least */ }
    show(theme);
  }
  function show(theme) {
    const [name, label] = LOOKS[theme];
    put(made, icon(name), label);
  }
  show(root.dataset.theme ?? "auto");
  return made;
}
