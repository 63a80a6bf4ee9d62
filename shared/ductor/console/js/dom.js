// Builds DOM without ever parsing a string as HTML: whatever data holds, it stays text.

const SVG = "http://www.w3.org/2000/svg";

/**
 * An HTML element.
 * @param {string} tag
 * @param {object|null} props `class`, `style` (object), `dataset` (object), `on` (object of listeners); properties that
 *   start with `on` and are functions become listeners; true sets an empty attribute, false/null/undefined none.
 * @param {...(Node|string|number|null|false|Array)} children nested arrays are flattened, null and false are left out
 */
export function h(tag, props, ...children) {
  return fill(document.createElement(tag), props, children);
}

/** The same for SVG. */
export function svg(tag, props, ...children) {
  return fill(document.createElementNS(SVG, tag), props, children);
}

function fill(element, props, children) {
  for (const [name, value] of Object.entries(props ?? {})) set(element, name, value);
  append(element, children);
  return element;
}

function set(element, name, value) {
  if (value === null || value === undefined || value === false) return;
  if (name === "on") {
    for (const [event, listener] of Object.entries(value)) element.addEventListener(event, listener);
  } else if (name.startsWith("on") && typeof value === "function") {
    element.addEventListener(name.slice(2).toLowerCase(), value);
  } else if (name === "style") {
    // Through the object model: the content security policy refuses style attributes.
    for (const [key, text] of Object.entries(value)) element.style.setProperty(key, text);
  } else if (name === "dataset") {
    Object.assign(element.dataset, value);
  } else if (name === "value" && "value" in element) {
    element.value = value;
  } else if (name === "checked" || name === "selected" || name === "indeterminate") {
    element[name] = value;
  } else {
    if (/^on/i.test(name)) throw new TypeError(`a listener must be a function: ${name}`);
    element.setAttribute(name, value === true ? "" : String(value));
  }
}

/** Appends children as `h` does. */
export function append(element, children) {
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
  return element;
}

/** Empties an element. */
export function clear(element) {
  element.replaceChildren();
  return element;
}

/** Replaces all children of an element. */
export function put(element, ...children) {
  return append(clear(element), children);
}

/** A text node. */
export function text(value) {
  return document.createTextNode(String(value ?? ""));
}

/** Listens; returns what stops it. */
export function on(target, event, listener, options) {
  target.addEventListener(event, listener, options);
  return () => target.removeEventListener(event, listener, options);
}

/** Sets an element's text only when it differs, so that selections and focus are left alone. */
export function setText(element, value) {
  const wanted = String(value ?? "");
  if (element.textContent !== wanted) element.textContent = wanted;
}
