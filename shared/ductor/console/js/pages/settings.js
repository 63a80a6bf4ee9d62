// The settings of a tenant: environments, variables, connections, keys, its plan.

import { h, put } from "../dom.js";
import { setQuery } from "../router.js";
import { tabs } from "../ui/tabs.js";
import { connectionsArea } from "../settings/connections.js";
import { environmentsArea } from "../settings/environments.js";
import { keysArea } from "../settings/keys.js";
import { planArea } from "../settings/plan.js";
import { variablesArea } from "../settings/variables.js";

const AREAS = { environments: environmentsArea, variables: variablesArea, connections: connectionsArea, keys: keysArea, plan: planArea };
const TABS = [
  ["environments", "Environments"],
  ["variables", "Variables"],
  ["connections", "Connections"],
  ["keys", "API keys"],
  ["plan", "Plan and limits"],
];

export function render(ctx) {
  ctx.title("Settings");
  const panel = h("div", { id: "tab-panel", role: "tabpanel" });
  const tabOf = (query) => (Object.hasOwn(AREAS, query.tab ?? "") ? query.tab : "environments");
  const bar = tabs(TABS, tabOf(ctx.query), (tab) => setQuery({ tab }));
  let shown = "";
  function show(query) {
    const tab = tabOf(query);
    bar.select(tab);
    if (tab === shown) return;
    shown = tab;
    put(panel, AREAS[tab](ctx.signal).element);
  }
  show(ctx.query);
  return {
    element: h("div", { class: "page" }, h("div", { class: "page-head" }, h("h1", null, "Settings")), bar, panel),
    update: (next) => show(next.query),
  };
}
