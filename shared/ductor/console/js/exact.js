// JavaScript keeps whole numbers exactly up to 2^53 only, the API up to 64 bits. Larger ones are carried as they were written.

const TOKENS = /"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;
const WHOLE = /^-?\d+$/;
/** Only a text with that many digits in a row can hold one: all others are read at full speed. */
const LONG = /\d{16}/;

/** Whether this browser tells how a number was written, and can write it so again. Both came in the same releases. */
export const keepsNumbers = typeof JSON.rawJSON === "function";

/** A whole number beyond 2^53: counts as the nearest number, and is written as it came. */
export class ExactNumber extends Number {
  #written;

  constructor(written) {
    super(written);
    this.#written = written;
  }

  toString() {
    return this.#written;
  }

  toJSON() {
    return JSON.rawJSON(this.#written);
  }
}

/** As JSON.parse; whole numbers that it would round are `ExactNumber`s, where the browser can. */
export function parseJson(text) {
  return keepsNumbers && LONG.test(text) ? JSON.parse(text, revive) : JSON.parse(text);
}

function revive(_name, value, { source }) {
  return typeof value === "number" && !Number.isSafeInteger(value) && WHOLE.test(source) ? new ExactNumber(source) : value;
}

/** Whether a JSON value has nothing inside. */
export const isLeaf = (value) => value === null || typeof value !== "object" || value instanceof ExactNumber;

/** Whether a number may have been rounded when it was read. */
export const maybeRounded = (value) => !keepsNumbers && Number.isInteger(value) && !Number.isSafeInteger(value);

/**
 * The first whole number of a JSON text that this browser could not send as it is written.
 * @param {string} text
 * @returns {{number: string, offset: number}|null}
 */
export function inexactNumber(text) {
  if (keepsNumbers) return null;
  for (const found of text.matchAll(TOKENS)) {
    const [word] = found;
    if (WHOLE.test(word) && !Number.isSafeInteger(Number(word))) return { number: word, offset: found.index };
  }
  return null;
}

/** Why it is not sent, in words. */
export const inexactWords = (number) =>
  `${number} is larger than this browser can keep exactly; write it as a text, or use a newer browser or the command line.`;
