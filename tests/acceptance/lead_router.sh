#!/usr/bin/env bash
# The definition commands of the runs guide, as printed there, against a running server: a family without environment is
# created, edited under its revision, published and triggered. Needs curl and jq.
#
#   source data/env && DUCTOR_ADMIN_KEY=$(. data/admin.env && echo "$DUCTOR_API_KEY") bash tests/acceptance/lead_router.sh
set -euo pipefail
: "${DUCTOR_API_KEY:?Set your ordinary tenant API key}"
# Connections are made by an administrator.
: "${DUCTOR_ADMIN_KEY:?Set the API key of an administrator}"
: "${DUCTOR_TENANT:?Set your tenant UUID}"

# The guide names the hosted service; the commands below stand as they are printed, and go to this server instead.
curl() { command curl --fail-with-body "${@/https:\/\/api.ductor.io/${DUCTOR_API_URL:-http://localhost:8080}}"; }

CREATED=$(
curl -s -X POST https://api.ductor.io/api/workflow-definitions \
  -H "Authorization: Bearer $DUCTOR_API_KEY" \
  -H "X-Tenant-ID: $DUCTOR_TENANT" \
  -H "Content-Type: application/json" \
  -d '{
    "family_slug": "lead-router",
    "title": "Lead Router",
    "description": "Enrich, score, and assign inbound leads",
    "tags": ["sales"]
  }'
)
DEF_ID=$(jq -er '.data.id' <<<"$CREATED")
jq -e '.data | select(.status == "DEFINITION_STATUS_DRAFT" and .version == 1 and .draft_revision == 1)' <<<"$CREATED" >/dev/null
echo "created $DEF_ID"

# Two edits of somebody else, so that the draft is at the revision that the guide's edit was made on.
for revision in 1 2; do
  curl -s -X PATCH "https://api.ductor.io/api/workflow-definitions/$DEF_ID/draft" \
    -H "Authorization: Bearer $DUCTOR_API_KEY" -H "X-Tenant-ID: $DUCTOR_TENANT" -H "Content-Type: application/json" \
    -d "{\"expected_draft_revision\": $revision}" >/dev/null
done

EDITED=$(
curl -s -X PATCH https://api.ductor.io/api/workflow-definitions/$DEF_ID/draft \
  -H "Authorization: Bearer $DUCTOR_API_KEY" \
  -H "X-Tenant-ID: $DUCTOR_TENANT" \
  -H "Content-Type: application/json" \
  -d '{
    "expected_draft_revision": 3,
    "title": "Lead Router v2",
    "operations": [
      { "add_step": { "ref": "enrich", "type": "STEP_TYPE_ACTION", "action": "hubspot.enrich_contact" } }
    ]
  }'
)
jq -e '.data | select(.draft_revision == 4 and .title == "Lead Router v2" and .steps[0].ref == "enrich")' <<<"$EDITED" >/dev/null
echo "edited: $(jq -c '[.warnings[].code]' <<<"$EDITED")"

# The same edit again was made on a revision that is gone: refused, and nothing changes.
if curl -s -X PATCH https://api.ductor.io/api/workflow-definitions/$DEF_ID/draft \
  -H "Authorization: Bearer $DUCTOR_API_KEY" -H "X-Tenant-ID: $DUCTOR_TENANT" -H "Content-Type: application/json" \
  -d '{"expected_draft_revision": 3, "title": "lost"}' >/dev/null; then
  echo "a stale edit was accepted" >&2
  exit 1
fi

# Without a connection the publication says what is missing, and writes nothing.
if REFUSED=$(curl -s -X POST "https://api.ductor.io/api/workflow-definitions/$DEF_ID/publish" \
  -H "Authorization: Bearer $DUCTOR_API_KEY" -H "X-Tenant-ID: $DUCTOR_TENANT"); then
  echo "a step without its connection was published" >&2
  exit 1
fi
jq -e '[.errors[] | [.field, .code]] == [["enrich.connection_ref", "CONNECTION_REQUIRED"]]' <<<"$REFUSED" >/dev/null

curl -s -X POST https://api.ductor.io/api/connections \
  -H "Authorization: Bearer $DUCTOR_ADMIN_KEY" -H "X-Tenant-ID: $DUCTOR_TENANT" -H "Content-Type: application/json" \
  -d '{"slug": "hubspot", "type": "hubspot", "secrets": {"access_token": "example-token"}}' | jq -e '.data.id' >/dev/null
echo "connected"

PUBLISHED=$(
curl -s -X POST https://api.ductor.io/api/workflow-definitions/$DEF_ID/publish \
  -H "Authorization: Bearer $DUCTOR_API_KEY" \
  -H "X-Tenant-ID: $DUCTOR_TENANT"
)
jq -e 'select(.published.version == 1 and .draft.version == 2 and .draft.draft_revision == 4)' <<<"$PUBLISHED" >/dev/null
# The version holds what the guide's step leaves out: the connection of that name, and the address of the lead.
jq -e '.published.steps[0] | select(.connection_ref == "hubspot" and .args.email == "${{ TRIGGER.payload.email }}")' \
  <<<"$PUBLISHED" >/dev/null
DRAFT_ID=$DEF_ID
DEF_ID=$(jq -er '.published.id' <<<"$PUBLISHED")
echo "published $DEF_ID"

curl -s "https://api.ductor.io/api/workflow-definitions/$DRAFT_ID/diff" \
  -H "Authorization: Bearer $DUCTOR_API_KEY" -H "X-Tenant-ID: $DUCTOR_TENANT" | jq -e '.data.identical' >/dev/null
curl -s "https://api.ductor.io/api/workflow-definitions?q=lead&tags=sales&status=published" \
  -H "Authorization: Bearer $DUCTOR_API_KEY" -H "X-Tenant-ID: $DUCTOR_TENANT" |
  jq -e --arg id "$DEF_ID" '[.data[].id] == [$id]' >/dev/null
echo "listed and compared"
