// A definition as the API answers it, and as people write it.

import { short } from "../graph/scopes.js";

const OWN = ["id", "status", "version", "draft_revision", "created_at", "updated_at", "published_at", "created_by", "updated_by"];
const FIRST = ["family_slug", "environment", "title", "description", "tags"];
const LAST = ["steps", "edges"];

/** The document without what the server keeps beside it, enumerations in their short form, in the order people write it. */
export function documentOf(detail) {
  const fields = Object.keys(detail).filter((name) => !OWN.includes(name));
  const middle = fields.filter((name) => !FIRST.includes(name) && !LAST.includes(name));
  const document = {};
  for (const name of [...FIRST, ...middle, ...LAST]) {
    const value = detail[name];
    const blank = value === undefined || value === null || value === "" || (Array.isArray(value) && !value.length);
    if (!blank || LAST.includes(name)) document[name] = value ?? [];
  }
  document.steps = each(document.steps, (step) => (typeof step.type === "string" ? { ...step, type: short(step.type) } : step));
  document.edges = each(document.edges, edgeOf);
  return document;
}

const each = (items, change) => (Array.isArray(items) ? items.map((item) => (item && typeof item === "object" ? change(item) : item)) : items);

/** Success is what an edge without a type is. */
function edgeOf({ source_ref, target_ref, type, ...rest }) {
  const named = typeof type === "string" ? short(type) : type;
  return { source_ref, target_ref, ...(named !== undefined && named !== "success" && { type: named }), ...rest };
}

/** `draft`, `published` or `archived`. */
export const statusOf = (detail) => short(detail.status);

/** What a version or draft is called beside its family: `v4`, `Draft`. */
export function versionName(card) {
  return statusOf(card) === "draft" ? "Draft" : `v${card.version}`;
}

/**
 * What a PATCH has to say so that `before` becomes `after`: changed top-level fields, null for those that are gone.
 * @returns {object} empty when nothing changed
 */
export function changedFields(before, after) {
  const changes = {};
  for (const name of new Set([...Object.keys(before), ...Object.keys(after)])) {
    if (JSON.stringify(before[name]) === JSON.stringify(after[name])) continue;
    changes[name] = after[name] === undefined ? null : after[name];
  }
  return changes;
}

/** All rows of one family, newest version first, the draft in front. */
export function byFamily(cards) {
  const families = new Map();
  for (const card of cards) {
    if (!families.has(card.family_slug)) families.set(card.family_slug, { slug: card.family_slug, draft: null, versions: [] });
    const family = families.get(card.family_slug);
    if (statusOf(card) === "draft") family.draft = card;
    else family.versions.push(card);
  }
  for (const family of families.values()) {
    family.versions.sort((a, b) => b.version - a.version);
    family.newest = family.versions.find((card) => statusOf(card) === "published") ?? null;
    family.card = family.newest ?? family.draft ?? family.versions[0];
    family.updated = [family.draft, ...family.versions].filter(Boolean).map((card) => card.updated_at).sort().at(-1);
  }
  return [...families.values()];
}
