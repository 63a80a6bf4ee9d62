// JavaScript keeps whole numbers exactly up to 2^53 only, the API up to 64 bits. What would change on the way is found before.

const TOKENS = /"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;

/**
 * The first whole number of a JSON text that this page could not send as it is written.
 * @param {string} text
 * @returns {{number: string, offset: number}|null}
 */
export function inexactNumber(text) {
  for (const found of text.matchAll(TOKENS)) {
    const [word] = found;
    if (/^-?\d+$/.test(word) && !Number.isSafeInteger(Number(word))) return { number: word, offset: found.index };
  }
  return null;
}

/** Why it is not sent, in words. */
export const inexactWords = (number) =>
  `${number} is larger than a browser can keep exactly; write it as a text, or use the command line for this one.`;
