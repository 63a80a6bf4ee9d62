#!/usr/bin/env bash
# The first workflow by hand, from draft to checked result, with nothing but curl and jq. Each request is what a user would
# type; added are a family of its own per execution, the wait for the end, and a check after every answer.
#
#   source data/env && bash tests/acceptance/hello_world.sh
set -euo pipefail
: "${DUCTOR_API_KEY:?Set your ordinary tenant API key}"
: "${DUCTOR_TENANT_ID:?Set your tenant UUID}"
BASE=${DUCTOR_API_URL:-http://localhost:8080}
ductor_api() {
  curl --fail-with-body --silent --show-error --max-time 30 \
    -H "Authorization: Bearer $DUCTOR_API_KEY" \
    -H "X-Tenant-ID: $DUCTOR_TENANT_ID" "$@"
}

fail() { echo "hello world: $*" >&2; exit 1; }

# refused STATUS CURL-ARGUMENTS…: the request must be refused with exactly this status.
refused() {
  local expected=$1 status
  shift
  status=$(ductor_api -o refusal.json -w '%{http_code}' "$@" 2>/dev/null) || true
  [ "$status" = "$expected" ] || fail "expected a refusal with $expected, the server answered $status: $(cat refusal.json)"
}

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"

# --- a draft

cat > hello_world.json <<'JSON'
{
  "environment": "default",
  "family_slug": "hello_world",
  "title": "Hello World",
  "steps": [
    {"ref": "greet", "type": "STEP_TYPE_DATAFLOW", "title": "Build greeting",
     "args": {"operation": "project", "input_expr": "TRIGGER",
              "redaction_policy": "none", "project": {"message": "\"hello\""}}},
    {"ref": "pause", "type": "STEP_TYPE_WAIT", "title": "Short delay",
     "args": {"duration": "2s"}}
  ],
  "edges": [{"source_ref": "greet", "target_ref": "pause", "type": "EDGE_TYPE_SUCCESS"}]
}
JSON
jq --arg slug "hello_$(date +%s)_$$" '.family_slug = $slug' hello_world.json > renamed.json
mv renamed.json hello_world.json

CREATED=$(ductor_api -X POST "$BASE/api/workflow-definitions" \
  -H "Content-Type: application/json" --data-binary @hello_world.json)
DRAFT_ID=$(echo "$CREATED" | jq -er '.data.id | strings | select(length > 0)')
ductor_api "$BASE/api/workflow-definitions/$DRAFT_ID" > hello_world.draft.json
jq -e '.data | select(.status == "DEFINITION_STATUS_DRAFT")' hello_world.draft.json > /dev/null
DRAFT_REVISION=$(jq -r '.data.draft_revision // 0' hello_world.draft.json)

# A family has one draft; a draft cannot run; a revision that nobody reviewed cannot be published.
refused 409 -X POST "$BASE/api/workflow-definitions" \
  -H "Content-Type: application/json" --data-binary @hello_world.json
refused 409 -X POST "$BASE/api/v2/workflow-definitions/$DRAFT_ID:trigger" \
  -H "Content-Type: application/json" -d '{}'
refused 409 -X POST "$BASE/api/workflow-definitions/$DRAFT_ID/publish" \
  -H "Content-Type: application/json" -d '{"expected_draft_revision": 4711}'

# --- a version

PUBLISHED=$(ductor_api -X POST "$BASE/api/workflow-definitions/$DRAFT_ID/publish" \
  -H "Content-Type: application/json" \
  -d "$(jq -nc --argjson revision "$DRAFT_REVISION" '{expected_draft_revision: $revision}')")
PUBLISHED_ID=$(echo "$PUBLISHED" | jq -er '.published.id | strings | select(length > 0)')
ductor_api "$BASE/api/workflow-definitions/$PUBLISHED_ID" > hello_world.published.json
jq -e '.data | select(.status == "DEFINITION_STATUS_PUBLISHED")' hello_world.published.json > /dev/null
[ "$PUBLISHED_ID" != "$DRAFT_ID" ] || fail "the published version has the id of the draft"

# --- a run, and its end

TRIGGERED=$(ductor_api -X POST "$BASE/api/v2/workflow-definitions/$PUBLISHED_ID:trigger" \
  -H "Content-Type: application/json" \
  -d '{"subject_type": "demo", "subject_id": "1"}')
RUN_ID=$(echo "$TRIGGERED" | jq -er '.run_id | strings | select(length > 0)')
echo "run: $RUN_ID"

STATUS=
for _ in $(seq 150); do
  ductor_api "$BASE/api/workflows/runs/$RUN_ID" > hello_world.run.json
  STATUS=$(jq -er '.data.summary.status | strings' hello_world.run.json)
  case $STATUS in pending | running | waiting) sleep 0.2 ;; *) break ;; esac
done
[ "$STATUS" = completed ] || fail "the run is $STATUS after 30 s: $(cat hello_world.run.json)"

# --- the evidence

ductor_api "$BASE/api/workflows/runs/$RUN_ID/steps" > hello_world.steps.json
jq . hello_world.steps.json > /dev/null
ductor_api "$BASE/api/v2/workflow-runs/$RUN_ID/snapshot" > hello_world.snapshot.json
jq -ec '.nodes.greet.latest_output_json | fromjson | .result | select(.message == "hello")' \
  hello_world.snapshot.json
jq -e '.nodes.pause | select(.status == "completed")' hello_world.snapshot.json > /dev/null

# --- the same graph for somebody else

jq '.family_slug += "_copy" | .title = "Hello World copy"' \
  hello_world.json > hello_world_copy.json
ductor_api -X POST "$BASE/api/workflow-definitions" \
  -H "Content-Type: application/json" --data-binary @hello_world_copy.json > hello_world_copy.draft.json
jq -e '.data | select(.status == "DEFINITION_STATUS_DRAFT" and .title == "Hello World copy")' \
  hello_world_copy.draft.json > /dev/null

# With a wrong key, and with an unknown id, nothing opens.
(DUCTOR_API_KEY=dk_wrong_wrong; refused 401 "$BASE/api/workflow-definitions/$DRAFT_ID")
refused 404 "$BASE/api/workflows/runs/00000000-0000-7000-8000-000000000000"
echo "hello world: ok"
