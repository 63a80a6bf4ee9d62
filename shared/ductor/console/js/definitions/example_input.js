// An input to begin with, from a JSON Schema: its required names with values of their types. Pure.

const DEEPEST = 6;
const BLANK = { string: "", integer: 0, number: 0, boolean: false, array: [], object: {}, null: null };

/** @param {object|null|undefined} schema @returns {*} `{}` without one */
export function exampleOf(schema, depth = 0) {
  if (!schema || typeof schema !== "object" || depth > DEEPEST) return {};
  if (schema.default !== undefined) return schema.default;
  if (schema.const !== undefined) return schema.const;
  if (Array.isArray(schema.examples) && schema.examples.length) return schema.examples[0];
  if (Array.isArray(schema.enum) && schema.enum.length) return schema.enum[0];
  const type = Array.isArray(schema.type) ? schema.type[0] : schema.type ?? (schema.properties ? "object" : depth ? "null" : "object");
  if (type === "integer" || type === "number") return schema.minimum ?? 0;
  if (type !== "object") return structuredClone(BLANK[type] ?? null);
  const properties = schema.properties ?? {};
  const required = Array.isArray(schema.required) ? schema.required : [];
  return Object.fromEntries(required.filter((name) => typeof name === "string").map((name) => [
    name,
    properties[name] === undefined ? null : exampleOf(properties[name], depth + 1),
  ]));
}
