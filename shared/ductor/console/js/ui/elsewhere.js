// What stands in the place of a value that this page may not fetch.

import { h } from "../dom.js";
import { copyButton } from "./buttons.js";
import { notice } from "./notice.js";

/** Values that lie in a bucket are not for a page: it may not talk to other hosts. */
export function elsewhere(path) {
  const command = `curl --location -H "Authorization: Bearer $DUCTOR_API_KEY" -H "X-Tenant-ID: $DUCTOR_TENANT_ID" "$DUCTOR_API_URL${path}"`;
  return notice("idle", "Over 2 MB: it lies in the bucket", "This page talks to nobody but the API. Read it with:",
    h("div", { class: "row" }, h("code", { class: "break" }, command), copyButton(command, "Copy the command")));
}
