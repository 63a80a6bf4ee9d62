// Who is signed in: a key and a tenant. They stay in this tab, or on this machine when the user asks for that.

const NAME = "ductor.session";

let current = null;

/** @returns {{key: string, tenant: string}|null} */
export function session() {
  current ??= read(sessionStorage) ?? read(localStorage);
  return current;
}

/** Stores a session; `remember` keeps it beyond this tab. */
export function signIn({ key, tenant, remember = false }) {
  current = { key, tenant };
  sessionStorage.setItem(NAME, JSON.stringify(current));
  if (remember) localStorage.setItem(NAME, JSON.stringify(current));
  else localStorage.removeItem(NAME);
}

/** Forgets the session everywhere. */
export function signOut() {
  current = null;
  sessionStorage.removeItem(NAME);
  localStorage.removeItem(NAME);
}

/** Whether the session is kept on this machine. */
export function remembered() {
  return read(localStorage) !== null;
}

/**
 * Takes `#key=…&tenant=…` out of the address bar and its history entry, and signs in with it. `&to=/runs/…` says where
 * to go on.
 * @returns {boolean} whether there was such a link
 */
export function consumeLink() {
  const fragment = location.hash.slice(1);
  if (!/^(key|tenant)=/.test(fragment)) return false;
  const values = new URLSearchParams(fragment);
  const key = values.get("key");
  const tenant = values.get("tenant");
  const to = values.get("to") ?? "";
  history.replaceState(null, "", `${location.pathname}${location.search}#${to.startsWith("/") ? to : "/runs"}`);
  if (!key || !tenant) return false;
  signIn({ key, tenant, remember: remembered() });
  return true;
}

function read(storage) {
  try {
    const found = JSON.parse(storage.getItem(NAME) ?? "null");
    return found && typeof found.key === "string" && typeof found.tenant === "string" ? found : null;
  } catch {
    return null;
  }
}
