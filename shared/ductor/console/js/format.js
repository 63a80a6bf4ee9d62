// Values in words. Pure: the present instant is an argument.

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** Milliseconds as people say them: `840 ms`, `2.4 s`, `3m 20s`, `5h 12m`, `3d 4h`. */
export function duration(ms) {
  if (ms === null || ms === undefined || Number.isNaN(ms)) return "";
  if (ms < 0) return `-${duration(-ms)}`;
  if (ms < SECOND) return `${Math.round(ms)} ms`;
  if (ms < 10 * SECOND) return `${(Math.floor(ms / 100) / 10).toFixed(1)} s`;
  if (ms < MINUTE) return `${Math.floor(ms / SECOND)} s`;
  if (ms < HOUR) return pair(ms, MINUTE, "m", SECOND, "s");
  if (ms < DAY) return pair(ms, HOUR, "h", MINUTE, "m");
  return pair(ms, DAY, "d", HOUR, "h");
}

function pair(ms, large, largeUnit, small, smallUnit) {
  const rest = Math.floor((ms % large) / small);
  return `${Math.floor(ms / large)}${largeUnit}${rest ? ` ${rest}${smallUnit}` : ""}`;
}

/** Epoch milliseconds of an API time, null for none. */
export function instant(when) {
  if (!when) return null;
  const at = Date.parse(when);
  return Number.isNaN(at) ? null : at;
}

/** The time from one API time to another; to `now` when it has not come yet. */
export function between(from, to, now = Date.now()) {
  const start = instant(from);
  return start === null ? "" : duration(Math.max(0, (instant(to) ?? now) - start));
}

/** `just now`, `4 min ago`, `in 2 h`, `yesterday`, then the date. */
export function relative(when, now = Date.now()) {
  const at = instant(when);
  if (at === null) return "";
  const distance = Math.abs(now - at);
  const say = (amount) => (at > now ? `in ${amount}` : `${amount} ago`);
  if (distance < 5 * SECOND) return "just now";
  if (distance < MINUTE) return say(`${Math.floor(distance / SECOND)} s`);
  if (distance < HOUR) return say(`${Math.floor(distance / MINUTE)} min`);
  // What has gone by is counted in full; what is to come is rounded: a day less a second is no 23 hours.
  const count = (unit) => (at > now ? Math.round(distance / unit) : Math.floor(distance / unit));
  if (distance < DAY) return say(`${count(HOUR)} h`);
  if (distance < 7 * DAY) return say(`${count(DAY)} d`);
  return date(when, now);
}

/** The day: `12 Mar`, with the year when it is another one. */
export function date(when, now = Date.now()) {
  const at = instant(when);
  if (at === null) return "";
  const other = new Date(at).getFullYear() !== new Date(now).getFullYear();
  return new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", ...(other && { year: "numeric" }) }).format(at);
}

/** Day and time of this machine, to the second. */
export function dateTime(when) {
  const at = instant(when);
  if (at === null) return "";
  return new Intl.DateTimeFormat("en-GB", {
    day: "numeric", month: "short", year: "numeric", hour: "2-digit", minute: "2-digit", second: "2-digit",
  }).format(at);
}

/** The time of day with milliseconds. */
export function clock(when) {
  const at = instant(when);
  if (at === null) return "";
  return new Intl.DateTimeFormat("en-GB", {
    hour: "2-digit", minute: "2-digit", second: "2-digit", fractionalSecondDigits: 3,
  }).format(at);
}

/** `0 B`, `12 KB`, `3.4 MB`; thousands, as disks count. */
export function bytes(count) {
  if (count === null || count === undefined) return "";
  if (count < 1000) return `${count} B`;
  const units = ["KB", "MB", "GB", "TB"];
  let value = count;
  let unit = -1;
  do {
    value /= 1000;
    unit += 1;
  } while (value >= 999.5 && unit < units.length - 1);
  return `${value < 10 ? value.toFixed(1) : Math.round(value)} ${units[unit]}`;
}

/** Money with as many digits as a small sum needs. */
export function money(amount, currency = "USD") {
  if (!amount) return `0 ${currency}`;
  const digits = amount >= 1 ? 2 : Math.min(10, 1 - Math.floor(Math.log10(amount)));
  return `${amount.toFixed(digits)} ${currency}`;
}

/** `timed_out` as `Timed out`. */
export function words(name) {
  const plain = String(name ?? "").replaceAll("_", " ");
  return plain.charAt(0).toUpperCase() + plain.slice(1);
}

/** `NodeCompleted`, `STEP_TYPE_AI_ACTION` or `node_completed` as lower-case words. */
export function phrase(name) {
  return String(name ?? "").replace(/([a-z0-9])([A-Z])/g, "$1 $2").replaceAll("_", " ").toLowerCase();
}

/** A step or edge type without its prefix, lower case: `STEP_TYPE_WAIT` as `wait`. */
export function shortType(name) {
  return String(name ?? "").replace(/^(STEP|EDGE)_TYPE_/, "").toLowerCase();
}

/** `3 items`, `1 item`. */
export function plural(count, one, many = `${one}s`) {
  return `${count.toLocaleString("en")} ${count === 1 ? one : many}`;
}
