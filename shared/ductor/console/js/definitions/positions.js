// Where things stand in a JSON text: from a path to its lines, and from a fault in the syntax to its line. Pure.

/** A fault in the syntax, at an offset of the text. */
export class JsonFault extends Error {
  constructor(message, offset) {
    super(message);
    this.name = "JsonFault";
    this.offset = offset;
  }
}

/**
 * @typedef {{start: number, end: number, value: *, children: Map<string, Place>|null}} Place offsets of a value, and the
 *   places of its members by name or index
 * @param {string} text
 * @returns {Place}
 * @throws {JsonFault} with words for people, at the place where they have to look
 */
export function readPlaces(text) {
  const reader = new Reader(text);
  reader.space();
  if (reader.at >= text.length) throw new JsonFault("The text is empty: a definition is a JSON object.", 0);
  const place = reader.value();
  reader.space();
  if (reader.at < text.length) throw new JsonFault("Something stands after the end of the document.", reader.at);
  return place;
}

class Reader {
  constructor(text) {
    this.text = text;
    this.at = 0;
  }

  space() {
    while (" \t\n\r".includes(this.text[this.at] ?? "x")) this.at += 1;
  }

  value() {
    const start = this.at;
    const char = this.text[start];
    const children = char === "{" ? this.object() : char === "[" ? this.array() : null;
    const value = children ? undefined : this.scalar();
    return { start, end: this.at, value, children };
  }

  object() {
    return this.members("}", () => {
      const start = this.at;
      if (this.text[start] !== '"') throw new JsonFault('A name in double quotes is expected here, for example "title".', start);
      const name = this.string();
      this.space();
      if (this.text[this.at] !== ":") throw new JsonFault(`A colon is missing after "${name.slice(0, 40)}".`, this.at);
      this.at += 1;
      this.space();
      return [name, start];
    });
  }

  array() {
    let index = 0;
    return this.members("]", () => [String(index++), this.at]);
  }

  members(close, key) {
    const children = new Map();
    const opened = this.at;
    this.at += 1;
    this.space();
    if (this.text[this.at] === close) {
      this.at += 1;
      return children;
    }
    for (;;) {
      const [name, start] = key();
      if (this.text[this.at] === close || this.text[this.at] === ",") throw new JsonFault("A value is missing here.", this.at);
      if (children.has(name)) throw new JsonFault(`The name "${name.slice(0, 40)}" stands twice in one object.`, start);
      const place = this.value();
      children.set(name, { ...place, start });
      this.space();
      const next = this.text[this.at];
      if (next === undefined) throw new JsonFault(`A "${close}" is missing: what opens here is never closed.`, opened);
      if (next !== "," && next !== close) throw new JsonFault(`A comma or "${close}" is missing before this.`, this.at);
      this.at += 1;
      if (next === close) return children;
      this.space();
      if (this.text[this.at] === close) throw new JsonFault(`A comma too many: "${close}" follows it.`, this.at);
    }
  }

  scalar() {
    const start = this.at;
    if (this.text[start] === '"') return this.string();
    const word = /[^\s,\]}:]*/y;
    word.lastIndex = start;
    const [found] = word.exec(this.text);
    this.at = start + Math.max(1, found.length);
    try {
      return JSON.parse(found);
    } catch {
      const shown = found.slice(0, 30) || this.text[start] || "";
      throw new JsonFault(`${shown || "The end of the text"} is no JSON value: texts stand in double quotes.`, start);
    }
  }

  string() {
    const start = this.at;
    const body = /"(?:[^"\\\n]|\\.)*"/y;
    body.lastIndex = start;
    const found = body.exec(this.text);
    if (!found) throw new JsonFault("This text has no closing quote on its line.", start);
    this.at = start + found[0].length;
    try {
      return JSON.parse(found[0]);
    } catch {
      throw new JsonFault("This text has an escape that JSON does not know, or a control character.", start);
    }
  }
}

/**
 * The place that a fault of the API is about. Its `field` begins with the ref of a step, or is a path from the top
 * (`edges[3].type`, `schedule.cron`); the longest part of it that exists counts.
 * @param {Place} root
 * @param {string} field
 * @returns {Place} the whole document when nothing of it exists
 */
export function placeOf(root, field) {
  const parts = String(field).replaceAll(/\[(\d+)\]/g, ".$1").split(".").filter(Boolean);
  const steps = root.children?.get("steps")?.children;
  const own = [...(steps?.values() ?? [])].find((step) => {
    const ref = step.children?.get("ref") ?? step.children?.get("id");
    return ref?.value === parts[0];
  });
  let place = own ?? root;
  for (const part of own ? parts.slice(1) : parts) {
    const next = place.children?.get(part);
    if (!next) break;
    place = next;
  }
  return place;
}

/** The ref of the step around an offset, or null. */
export function stepAt(root, offset) {
  for (const step of root.children?.get("steps")?.children?.values() ?? []) {
    if (offset < step.start || offset > step.end) continue;
    return (step.children?.get("ref") ?? step.children?.get("id"))?.value ?? null;
  }
  return null;
}

/** The line of an offset, from 1. */
export function lineOf(text, offset) {
  let line = 1;
  for (let i = text.indexOf("\n"); i >= 0 && i < offset; i = text.indexOf("\n", i + 1)) line += 1;
  return line;
}
