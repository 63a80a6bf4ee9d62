// Where somebody was on a page that they left: the way back leads there again, by the browser's own entries.

const MOST = 20;
const places = new Map();
let last = 0;
let here = null;

// The page is filled after the browser would scroll.
history.scrollRestoration = "manual";

/** Remembers where the page that is left stands; `kept` is whatever it wants back. */
export function leavePlace(kept) {
  if (here === null) return;
  places.delete(here);
  places.set(here, { y: window.scrollY, kept });
  if (places.size > MOST) places.delete(places.keys().next().value);
}

/** Where the browser's present entry was left; null for one that is new. */
export function enterPlace() {
  here = history.state?.place ?? null;
  const found = here === null ? null : places.get(here) ?? null;
  if (here === null) {
    here = `${Date.now()}-${(last += 1)}`;
    history.replaceState({ place: here }, "");
  }
  return found;
}
