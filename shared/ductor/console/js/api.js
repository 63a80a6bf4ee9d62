// The only place that talks to the server. Every address is relative to the page, so a prefix before it does no harm.

import { parseJson } from "./exact.js";
import { session } from "./session.js";

const BASE = new URL("../", document.baseURI);
const ATTEMPTS = 4;
const LONGEST_PAUSE_MS = 10_000;

/** A refusal, in the API's own words. `errors` is a list of `{field, code, message}`. */
export class ApiError extends Error {
  constructor(status, body) {
    super(body.message || `the server answered ${status}`);
    this.name = "ApiError";
    this.status = status;
    this.error_code = body.error_code || (status ? `HTTP_${status}` : "UNREACHABLE");
    this.errors = Array.isArray(body.errors) ? body.errors : [];
    this.trace_id = body.metadata?.trace_id ?? "";
  }

  /** The stable code of the first fault. */
  get code() {
    return this.errors[0]?.code ?? this.error_code;
  }
}

let signedOut = () => {};

/** Says what happens at a 401. */
export function onSignedOut(listener) {
  signedOut = listener;
}

/** An id under which a request may be repeated: make it once per click, and use it for every repeat of that click. */
export function newRequestId() {
  return `console-${uuid()}`;
}

/** A random UUID; also where the page came over plain HTTP from another machine, and the browser has no maker of them. */
function uuid() {
  if (typeof crypto.randomUUID === "function") return crypto.randomUUID();
  const hex = [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  const variant = "89ab"[parseInt(hex[16], 16) % 4];
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-${variant}${hex.slice(17, 20)}-${hex.slice(20)}`;
}

/** The absolute address of an API path. */
export function apiUrl(path, query) {
  const url = new URL(path.replace(/^\//, ""), BASE);
  for (const [name, value] of Object.entries(query ?? {})) {
    if (value !== null && value !== undefined && value !== "") url.searchParams.set(name, value);
  }
  return url;
}

/**
 * `get(path, {query, signal})`, `post(path, body, {signal})` and so on answer the JSON body as it is, whole numbers beyond 2^53 too.
 * Throttled (429) and unavailable (503) requests, and those that got no answer, are repeated with patience: everything
 * that changes something carries an id that makes a repeat harmless, or is refused as a duplicate.
 */
export const api = {
  get: (path, options = {}) => send("GET", path, undefined, options),
  post: (path, body, options = {}) => send("POST", path, body ?? {}, options),
  patch: (path, body, options = {}) => send("PATCH", path, body ?? {}, options),
  put: (path, body, options = {}) => send("PUT", path, body ?? {}, options),
  delete: (path, options = {}) => send("DELETE", path, undefined, options),
};

async function send(method, path, body, options) {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await once(method, path, body, options);
    } catch (error) {
      const again = error instanceof ApiError && [0, 429, 503].includes(error.status) && attempt < ATTEMPTS;
      // Without an id a write that got no answer may have happened.
      const safe = method === "GET" || error.status === 429 || Boolean(body?.request_id || body?.idempotency_key);
      if (!again || !safe) throw error;
      await pause(error.retryAfterMs ?? 300 * 2 ** attempt, options.signal);
    }
  }
}

async function once(method, path, body, { query, signal, credentials }) {
  const who = credentials ?? session();
  const headers = { Accept: "application/json" };
  if (who) Object.assign(headers, { Authorization: `Bearer ${who.key}`, "X-Tenant-ID": who.tenant });
  if (body !== undefined) headers["Content-Type"] = "application/json";
  let response;
  try {
    const text = body === undefined ? undefined : JSON.stringify(body);
    // A redirect leads to a store that must not see the key; `opaque` tells the caller.
    response = await fetch(apiUrl(path, query), {
      method, headers, body: text, signal, redirect: "manual", cache: "no-store", credentials: "omit",
    });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ApiError(0, { message: "The server cannot be reached." });
  }
  if (response.type === "opaqueredirect") throw new ApiError(303, { error_code: "ELSEWHERE", message: "Too large to show here." });
  return answer(response, Boolean(credentials));
}

async function answer(response, probing) {
  const text = await response.text();
  let body = {};
  try {
    body = text ? parseJson(text) : {};
  } catch {
    if (response.ok) throw new ApiError(response.status, { message: "The answer is not JSON: is something else in front of the API?" });
  }
  if (response.ok) return body;
  const error = new ApiError(response.status, body && typeof body === "object" ? body : {});
  const seconds = Number(response.headers.get("Retry-After"));
  if (seconds > 0) error.retryAfterMs = Math.min(seconds * 1000, LONGEST_PAUSE_MS);
  if (response.status === 401 && !probing) signedOut(error);
  throw error;
}

function pause(ms, signal) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, ms);
    signal?.addEventListener("abort", () => {
      clearTimeout(timer);
      reject(new DOMException("aborted", "AbortError"));
    }, { once: true });
  });
}
