// Hash routes: `#/runs?status=failed`. Filters, tabs and selections live in the address, so every view has a link.

/** @returns {{path: string, query: Object<string, string>}} */
export function readHash(hash = location.hash) {
  const [path, search = ""] = hash.replace(/^#/, "").split(/\?(.*)/s);
  return { path: path || "/", query: Object.fromEntries(new URLSearchParams(search)) };
}

/** The address of a view: `href("/runs", {status: "failed"})`. Empty values are left out. */
export function href(path, query = {}) {
  const kept = Object.entries(query).filter(([, value]) => value !== null && value !== undefined && value !== "");
  const search = new URLSearchParams(kept.map(([name, value]) => [name, String(value)])).toString();
  return `#${path}${search ? `?${search}` : ""}`;
}

/** Goes to a view. `replace` leaves no entry in the history. */
export function navigate(path, query = {}, { replace = false } = {}) {
  const target = href(path, query);
  if (target === location.hash) return;
  if (replace) {
    history.replaceState(history.state, "", target);
    window.dispatchEvent(new HashChangeEvent("hashchange"));
  } else {
    location.hash = target;
  }
}

/** Changes some of the query of the present view; null removes. */
export function setQuery(changes, options = { replace: true }) {
  const { path, query } = readHash();
  navigate(path, { ...query, ...changes }, options);
}

/**
 * Finds the route of a path. Patterns have parameters as `:name`.
 * @returns {{route: object, params: Object<string, string>}|null}
 */
export function match(routes, path) {
  const parts = path.split("/").filter(Boolean);
  for (const route of routes) {
    const wanted = route.pattern.split("/").filter(Boolean);
    if (wanted.length !== parts.length) continue;
    const params = {};
    const fits = wanted.every((part, index) => {
      if (!part.startsWith(":")) return part === parts[index];
      try {
        params[part.slice(1)] = decodeURIComponent(parts[index]);
        return true;
      } catch {
        return false;
      }
    });
    if (fits) return { route, params };
  }
  return null;
}
