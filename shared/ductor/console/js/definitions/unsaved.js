// Text of a draft that could not be saved when its page was left: kept in this tab until it is taken back or forgotten.

const name = (id) => `ductor.unsaved.${id}`;

/** Keeps a text. */
export function keepText(id, text) {
  try {
    sessionStorage.setItem(name(id), text);
  } catch { /* full or forbidden: then it is lost, as it would be without this */ }
}

/** What was kept, or null; asking does not remove it. */
export function keptText(id) {
  try {
    return sessionStorage.getItem(name(id));
  } catch {
    return null;
  }
}

/** Forgets it. */
export function forgetText(id) {
  try {
    sessionStorage.removeItem(name(id));
  } catch { /* nothing was kept */ }
}
