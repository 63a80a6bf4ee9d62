// Sign-in: a key and its tenant, tried against the API before anything is stored.

import { h, put } from "./dom.js";
import { api } from "./api.js";
import { signIn } from "./session.js";
import { button } from "./ui/buttons.js";
import { field } from "./ui/dialog.js";
import { faults, notice } from "./ui/notice.js";

/** @param {{error?: Error, onDone: function(): void}} options `error` says why somebody was sent here */
export function signInPage({ error, onDone }) {
  const key = field({ name: "key", label: "API key", kind: "password", placeholder: "dk_…", required: true });
  const tenant = field({ name: "tenant", label: "Tenant", placeholder: "tenant id", required: true, spellcheck: "false", autocapitalize: "none" });
  const remember = field({
    name: "remember", label: "Remember on this machine", kind: "checkbox",
    hint: "Without it, the key is forgotten when this tab closes.",
  });
  const trouble = h("div", { "aria-live": "assertive" }, error && explain(error));
  const send = button("Sign in", { kind: "primary", type: "submit" });
  const form = h("form", { class: "stack", novalidate: true, onsubmit: submitted }, key, tenant, remember, trouble, send);

  async function submitted(event) {
    event.preventDefault();
    const credentials = { key: key.value(), tenant: tenant.value() };
    key.fail(credentials.key ? "" : "Enter the key: it begins with dk_.");
    tenant.fail(credentials.tenant ? "" : "Enter the tenant that the key belongs to.");
    if (!credentials.key || !credentials.tenant) return;
    if (/[^\x20-\x7e]/.test(credentials.key + credentials.tenant)) {
      put(trouble, notice("failed", "A key and a tenant hold plain letters, digits and signs only."));
      return;
    }
    send.disabled = true;
    try {
      await api.get("/api/workflows/runs", { query: { limit: 1 }, credentials });
      signIn({ ...credentials, remember: remember.value() });
      onDone();
    } catch (refused) {
      put(trouble, explain(refused));
      send.disabled = false;
    }
  }

  return h("div", { class: "signin" }, h("div", { class: "card signin-card" },
    h("div", { class: "stack" }, h("div", { class: "brand" }, h("img", { src: "icon.svg", alt: "", width: 30, height: 30 }), "Ductor"),
      h("p", { class: "muted" }, "Sign in with an API key. On a local server, ", h("code", null, "source data/env"), " has both; ",
        h("code", null, "ductor serve"), " prints a link that signs you in.")), form));
}

/** The refusal, and what to do about it. */
function explain(error) {
  const words = {
    401: ["This key is not known", "It may be mistyped, revoked or expired. Issue another one with an administrator's key."],
    403: error.code === "TENANT_MISMATCH" || /tenant/i.test(error.message)
      ? ["This key belongs to another tenant", "Check the tenant: it stands beside the key where the key was issued."]
      : ["This key may not read runs", "The console needs at least the scope workflow:read, which the role viewer has."],
    0: ["The server cannot be reached", "Is it running, and is this its address?"],
  }[error.status] ?? [error.message, ""];
  return notice("failed", words[0], words[1], error.errors?.length ? faults(error) : null);
}
