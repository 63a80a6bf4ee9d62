// Reads again and again while somebody looks: quickly while things change, ever more slowly while nothing does.

/**
 * The pause before the next look.
 * @param {number} quiet how many looks in a row changed nothing (or failed)
 */
export function nextDelay(quiet, { fastest = 1000, slowest = 15_000 } = {}) {
  return Math.min(slowest, Math.round(fastest * 1.5 ** quiet));
}

/**
 * Calls `look(signal)` until it answers "done". "changed" makes the next look soon, anything else later. Looks stop
 * while the page is hidden, and begin anew at once when it shows again. A look that throws counts as a quiet one.
 * @returns {{stop: function(): void, now: function(): void}} `now` looks at once, quickly again from there on
 */
export function poll(look, { fastest = 1000, slowest = 15_000, onError = () => {} } = {}) {
  const abort = new AbortController();
  let timer = null;
  let quiet = 0;
  let busy = false;
  let again = false;
  let finished = false;

  async function run() {
    timer = null;
    if (finished || document.hidden) return;
    busy = true;
    try {
      const outcome = await look(abort.signal);
      if (outcome === "done") finished = true;
      quiet = outcome === "changed" ? 0 : quiet + 1;
    } catch (error) {
      if (error.name === "AbortError") return;
      quiet += 1;
      onError(error);
    } finally {
      busy = false;
    }
    if (again) {
      again = false;
      quiet = 0;
      finished = false;
      run();
    } else if (!finished && !abort.signal.aborted) {
      timer = setTimeout(run, nextDelay(quiet, { fastest, slowest }));
    }
  }

  function now() {
    if (abort.signal.aborted) return;
    if (busy) {
      again = true;
      return;
    }
    clearTimeout(timer);
    quiet = 0;
    finished = false;
    run();
  }

  const shown = () => {
    if (!document.hidden) now();
  };
  document.addEventListener("visibilitychange", shown);
  run();
  return {
    now,
    stop() {
      abort.abort();
      clearTimeout(timer);
      document.removeEventListener("visibilitychange", shown);
    },
  };
}
