// What the tenant's plan allows. Plans are changed by the operator of the installation, not here.

import { h } from "../dom.js";
import { dateTime, plural, phrase } from "../format.js";
import { short } from "../graph/scopes.js";
import { area, readAll } from "./area.js";

const LIMITS = [
  ["max_steps", "Steps per definition"], ["max_environments", "Environments"], ["max_connections", "Connections"], ["max_api_keys", "API keys"],
  ["requests_per_second", "Requests per second"], ["burst", "Requests at once"], ["retention_days", "Runs are kept"],
];

export function planArea(signal) {
  return area({
    title: "Plan and limits", what: "the plan", signal, words: "What this tenant may use. The operator of the installation changes it.",
    load: async () => {
      const [tenants, environments, connections, keys] = await Promise.all([
        readAll("/api/admin/tenants", { signal }), readAll("/api/environments", { signal }), readAll("/api/connections", { signal }), readAll("/api/admin/api-keys", { signal }),
      ]);
      const used = {
        max_environments: environments.length,
        max_connections: connections.length,
        max_api_keys: keys.filter((one) => !one.revoked_at).length,
      };
      return tenants.map((tenant) => card(tenant, tenants.length === 1 ? used : {}));
    },
  });
}

function card(tenant, used) {
  const { entitlements } = tenant;
  return h("div", { class: "card pad stack" },
    h("div", null,
      h("h3", null, tenant.name),
      h("div", { class: "small muted break" },
        h("code", null, tenant.id),
        ` · since ${dateTime(tenant.created_at)}`,
        entitlements.plan && ` · plan ${entitlements.plan}`,
      ),
    ),
    h("div", { class: "limits" },
      LIMITS.map(([name, label]) => h("div", null,
        h("div", { class: "small muted" }, label),
        h("div", { class: "strong" }, value(name, entitlements[name], used[name])),
      )),
    ),
    h("div", null,
      h("div", { class: "small muted" }, "Step types"),
      entitlements.step_types === null ? "All" : entitlements.step_types.map((type) => h("span", { class: "chip" }, phrase(short(type)))),
    ));
}

function value(name, limit, used) {
  const own = used === undefined ? "" : `${used} of `;
  if (name === "retention_days") return limit ? plural(limit, "day") : "for ever";
  return limit ? `${own}${limit.toLocaleString("en")}` : used === undefined ? "No limit" : `${used}, no limit`;
}
