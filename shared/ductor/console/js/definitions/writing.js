// JSON and YAML texts for people. Pure.

import { isLeaf } from "../exact.js";

const WIDTH = 96;

/** JSON with two spaces of indentation; what fits on one line stands on one line. */
export function toJson(value, indent = "", used = 0) {
  if (isLeaf(value)) return JSON.stringify(value);
  const flat = oneLine(value);
  const large = Array.isArray(value) && value.length > 1 && value.every((item) => item && typeof item === "object");
  if (!large && indent && flat.length + used + indent.length <= WIDTH) return flat;
  const inner = `${indent}  `;
  const lines = Array.isArray(value)
    ? value.map((item) => `${inner}${toJson(item, inner)}`)
    : Object.entries(value).map(([key, item]) => {
      const name = `${JSON.stringify(key)}: `;
      return `${inner}${name}${toJson(item, inner, name.length)}`;
    });
  if (!lines.length) return Array.isArray(value) ? "[]" : "{}";
  const [open, close] = Array.isArray(value) ? "[]" : "{}";
  return `${open}\n${lines.join(",\n")}\n${indent}${close}`;
}

function oneLine(value) {
  if (isLeaf(value)) return JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map(oneLine).join(", ")}]`;
  const entries = Object.entries(value);
  return entries.length ? `{ ${entries.map(([key, item]) => `${JSON.stringify(key)}: ${oneLine(item)}`).join(", ")} }` : "{}";
}

const PLAIN = /^[A-Za-z_][A-Za-z0-9_./@ -]*$/;
/** To YAML some of these are line breaks, others no characters at all. */
const SPECIAL = /[\u007f-\u009f\u2028\u2029\ufeff\ufffe\uffff]/g;
const WORDS = /^(true|false|null|yes|no|on|off|y|n|~)$/i;

/** YAML that `ductor workflow publish` reads back as the same document. */
export function toYaml(value, indent = "") {
  if (Array.isArray(value)) {
    return value.map((item) => {
      const text = block(item, `${indent}  `);
      return text.startsWith("\n") ? `${indent}- ${text.trimStart()}` : `${indent}- ${text}`;
    }).join("\n");
  }
  return Object.entries(value).map(([key, item]) => {
    const text = block(item, `${indent}  `);
    return `${indent}${scalar(key)}:${text.startsWith("\n") ? text : ` ${text}`}`;
  }).join("\n");
}

function block(value, indent) {
  if (isLeaf(value)) return scalar(value);
  if (Array.isArray(value) ? !value.length : !Object.keys(value).length) return Array.isArray(value) ? "[]" : "{}";
  return `\n${toYaml(value, indent)}`;
}

function scalar(value) {
  if (typeof value !== "string") return JSON.stringify(value);
  const plain = PLAIN.test(value) && !WORDS.test(value) && !value.endsWith(" ");
  return plain ? value : JSON.stringify(value).replace(SPECIAL, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`);
}
