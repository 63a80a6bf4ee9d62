// Every page: its pattern, its entry in the navigation, and how to load it. Append; the first that fits wins.

/**
 * A page module exports `render(ctx)`, which answers `{element, dispose?, update?}`. `ctx` has `params`, `query`, `signal`
 * (aborted when the page is left), `title(text)`. When only the query changes, `update(ctx)` is called if there is one;
 * else the page is made anew.
 * @type {Array<{pattern: string, nav?: string, icon?: string, section?: string, load: function(): Promise<object>}>}
 */
export const routes = [
  { pattern: "/runs", nav: "Runs", icon: "runs", load: () => import("./runs.js") },
  { pattern: "/runs/:run", section: "/runs", load: () => import("./run.js") },
];
