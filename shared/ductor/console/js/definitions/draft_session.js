// A draft between this page and the server: what is saved, at which revision, and what to send.

import { api, ApiError } from "../api.js";
import { isLeaf } from "../exact.js";
import { changedFields, documentOf } from "./document.js";

const path = (id, rest = "") => `/api/workflow-definitions/${id}${rest}`;

/** @param {object} detail the draft as the API answered it */
export function draftSession(detail) {
  const { id } = detail;
  let saved = documentOf(detail);
  let revision = detail.draft_revision;

  function adopt(next) {
    saved = documentOf(next);
    revision = next.draft_revision;
    return saved;
  }

  /**
   * Saves a document. @returns {Promise<object[]|null>} what publication would refuse; null when nothing had changed
   * @throws {ApiError} DRAFT_REVISION_CONFLICT when somebody else was faster: nothing was saved then
   */
  async function save(document) {
    const changes = changedFields(saved, document);
    if (!Object.keys(changes).length) return null;
    try {
      const answer = await api.patch(path(id, "/draft"), { expected_draft_revision: revision, ...changes });
      saved = document;
      revision = answer.data.draft_revision;
      return answer.warnings;
    } catch (error) {
      // An earlier save of the same text may have arrived although its answer did not.
      if (isConflict(error) && same(documentOf(await read()), documentOf(document))) {
        adopt(await read());
        saved = document;
        return (await validate()).violations;
      }
      throw error;
    }
  }

  const read = async () => (await api.get(path(id))).data;
  const validate = async () => (await api.post(path(id, "/validate"))).data;
  return {
    save,
    read,
    validate,
    adopt,
    publish: () => api.post(path(id, "/publish"), { expected_draft_revision: revision }),
    revision: () => revision,
  };
}

/** Whether somebody else saved the draft in the meantime. */
export const isConflict = (error) => error instanceof ApiError && error.code === "DRAFT_REVISION_CONFLICT";

function same(one, other) {
  return JSON.stringify(sorted(one)) === JSON.stringify(sorted(other));
}

function sorted(value) {
  if (Array.isArray(value)) return value.map(sorted);
  if (isLeaf(value)) return value;
  return Object.fromEntries(Object.keys(value).sort().map((key) => [key, sorted(value[key])]));
}
