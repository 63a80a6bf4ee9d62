// What can be done with a definition as a whole: copy it, archive it, move it, remove its draft.

import { h } from "../dom.js";
import { api } from "../api.js";
import { navigate } from "../router.js";
import { dialog, field } from "../ui/dialog.js";
import { notice } from "../ui/notice.js";
import { toast, toastError } from "../ui/toast.js";
import { documentOf, versionName } from "./document.js";

const at = (definition, verb) => `/api/workflow-definitions/${definition.id}/${verb}`;

/** The warnings of a publication or promotion, as children of a toast. */
export function warningLines(warnings) {
  return warnings.length ? h("ul", { class: "faults small" },
    warnings.map((one) => h("li", null, h("code", null, one.code), ` ${one.field ? `${one.field}: ` : ""}${one.message}`)),
  ) : null;
}

/** A draft of a new family with the same content. */
export async function duplicate(definition) {
  const slug = field({
    name: "family_slug",
    label: "Name of the copy",
    value: `${definition.family_slug}_copy`.slice(0, 63),
    required: true,
    hint: "Lower-case letters, digits, _ and -",
  });
  const answer = await dialog({
    title: `Duplicate ${definition.family_slug}`, fields: [slug], action: "Duplicate",
    submit: (values) => api.post(at(definition, "duplicate"), values),
  });
  if (answer) navigate(`/definitions/${answer.data.id}/edit`);
}

/** Archives a version. @returns {Promise<boolean>} whether it was done */
export async function archive(definition) {
  const answer = await dialog({
    title: `Archive ${versionName(definition)} of ${definition.family_slug}?`, action: "Archive", danger: true,
    body: [
      "Nothing new starts from it, and its schedule stops. Runs that are under way finish. It cannot be undone; publish again to go on.",
    ],
    submit: () => api.post(at(definition, "archive")),
  });
  return Boolean(answer);
}

/** Deletes a draft. @returns {Promise<boolean>} */
export async function removeDraft(definition) {
  const answer = await dialog({
    title: `Delete the draft of ${definition.family_slug}?`, action: "Delete the draft", danger: true,
    body: ["Published versions and their runs are not touched. The draft cannot be brought back."],
    submit: () => api.delete(at(definition, "draft")),
  });
  return Boolean(answer);
}

/** A version into another environment. */
export async function promote(definition) {
  const target = field({
    name: "environment",
    label: "Into environment",
    required: true,
    placeholder: "production",
    hint: `${versionName(definition)} is in ${definition.environment || "the default environment"}`,
  });
  const answer = await dialog({
    title: `Promote ${versionName(definition)}`, fields: [target], action: "Promote",
    body: ["Makes a new version with the same content in the other environment."],
    submit: (values) => api.post(at(definition, "promote"), values),
  });
  if (!answer) return;
  toast("done", `Promoted as ${versionName(answer.published)}`, warningLines(answer.warnings));
  navigate(`/definitions/${answer.published.id}`);
}

/** The draft of the family: the one that there is, or a new one with this version's content. */
export async function edit(definition, draft) {
  try {
    const id = draft?.id ?? (await api.post("/api/workflow-definitions", documentOf(definition))).data.id;
    navigate(`/definitions/${id}/edit`);
  } catch (error) {
    toastError(error, "The draft could not be made");
  }
}

/** What a version says when it is not the newest one. */
export function olderNotice(definition, newest) {
  if (!newest || newest.id === definition.id || versionName(definition) === "Draft") return null;
  return notice(
    "idle",
    null,
    h("span", null, `There is a newer version: `, h("a", { href: `#/definitions/${newest.id}` }, versionName(newest))),
  );
}
