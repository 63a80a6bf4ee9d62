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
  { pattern: "/definitions", nav: "Definitions", icon: "definitions", load: () => import("./definitions.js") },
  { pattern: "/definitions/new", section: "/definitions", load: () => import("./new_definition.js") },
  { pattern: "/definitions/:id", section: "/definitions", load: () => import("./definition.js") },
  { pattern: "/definitions/:id/edit", section: "/definitions", load: () => import("./draft.js") },
  { pattern: "/definitions/:id/trigger", section: "/definitions", load: () => import("./trigger.js") },
  { pattern: "/approvals", nav: "Approvals", icon: "approvals", load: () => import("./approvals.js") },
  { pattern: "/schedules", nav: "Schedules", icon: "schedules", load: () => import("./schedules.js") },
  { pattern: "/schedules/:family", section: "/schedules", load: () => import("./schedule.js") },
  { pattern: "/events", nav: "Events", icon: "events", load: () => import("./events.js") },
  { pattern: "/batches", nav: "Batches", icon: "batches", load: () => import("./batches.js") },
  { pattern: "/batches/new", section: "/batches", load: () => import("./new_batch.js") },
  { pattern: "/batches/:id", section: "/batches", load: () => import("./batch.js") },
  { pattern: "/settings", nav: "Settings", icon: "settings", load: () => import("./settings.js") },
];
