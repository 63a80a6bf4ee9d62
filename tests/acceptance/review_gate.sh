#!/usr/bin/env bash
# The rest of the definition guide, as printed there: the offline check, the approval gate with its refusals, and the step
# that calls a connector. Needs the `ductor` command on the path, curl and jq; an administrator's key makes a connection and
# the key of somebody who may not decide.
#
#   source data/env && DUCTOR_ADMIN_KEY=$(. data/admin.env && echo "$DUCTOR_API_KEY") PATH=$PWD/.venv/bin:$PATH bash tests/acceptance/review_gate.sh
set -euo pipefail
: "${DUCTOR_API_KEY:?Set your ordinary tenant API key}"
: "${DUCTOR_ADMIN_KEY:?Set the API key of an administrator}"
: "${DUCTOR_TENANT_ID:?Set your tenant UUID}"
BASE=${DUCTOR_API_URL:-http://localhost:8080}
once=$(date +%s)_$$
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"

fail() { echo "review gate: $*" >&2; exit 1; }
# api KEY METHOD PATH [BODY]: the answer, whatever its status; the status stands in the file `status`.
api() {
  curl --silent --show-error --max-time 30 -o answer.json -w '%{http_code}' -X "$2" "$BASE$3" \
    -H "Authorization: Bearer $1" -H "X-Tenant-ID: $DUCTOR_TENANT_ID" -H "Content-Type: application/json" ${4:+-d "$4"} > status
  cat answer.json
}
mine() { api "$DUCTOR_API_KEY" "$@"; }
# refused STATUS CODE: the last request was, at the top INVALID_ARGUMENT for 400, with this code and a correction.
refused() {
  [ "$(cat status)" = "$1" ] || fail "expected $1, not $(cat status): $(cat answer.json)"
  jq -e --arg code "$2" '.errors[] | select(.code == $code and .message != "")' answer.json > /dev/null ||
    fail "expected $2: $(cat answer.json)"
  [ "$1" != 400 ] || jq -e '.error_code == "INVALID_ARGUMENT"' answer.json > /dev/null
}

# --- the offline check

cat > hello_world.yaml <<'YAML'
type: workflow_definition
definition:
  environment: default
  family_slug: hello_world
  title: Hello World
  steps:
    - ref: greet
      type: dataflow
      title: Build greeting
      args:
        operation: project
        input_expr: TRIGGER
        redaction_policy: none
        project:
          message: '"hello"'
    - ref: pause
      type: wait
      title: Short delay
      args:
        duration: 2s
  edges:
    - source_ref: greet
      target_ref: pause
      type: success
YAML
DUCTOR_API_URL=http://127.0.0.1:1 ductor workflow validate ./hello_world.yaml > /dev/null
sed 's/target_ref: pause/target_ref: nowhere/' hello_world.yaml > broken.yaml
if ductor workflow validate ./broken.yaml > /dev/null 2>&1; then fail "an edge that leads nowhere is valid offline"; fi
echo "checked offline"

# --- the gate

cat > review.json <<'JSON'
{
  "environment": "default",
  "family_slug": "review_before_work",
  "title": "Review before work",
  "steps": [
    {"ref": "review", "type": "STEP_TYPE_APPROVAL", "action": "approval",
     "args": {"audience": {"match_mode": "any", "roles": ["operator"]},
              "timeout_ms": 600000, "on_timeout": "fail"}},
    {"ref": "done", "type": "STEP_TYPE_DATAFLOW",
     "args": {"operation": "project", "input_expr": "TRIGGER",
              "redaction_policy": "none", "project": {"reviewed": "true"}}}
  ],
  "edges": [{"source_ref": "review", "target_ref": "done", "type": "EDGE_TYPE_APPROVED"}]
}
JSON
jq --arg slug "review_$once" '.family_slug = $slug' review.json > renamed.json
DRAFT_ID=$(mine POST /api/workflow-definitions "$(cat renamed.json)" | jq -er .data.id)
PUBLISHED_ID=$(mine POST "/api/workflow-definitions/$DRAFT_ID/publish" '{"expected_draft_revision": 1}' | jq -er .published.id)
RUN_ID=$(mine POST "/api/v2/workflow-definitions/$PUBLISHED_ID:trigger" '{}' | jq -er .run_id)

node() { mine GET "/api/v2/workflow-runs/$RUN_ID/snapshot" | jq -r ".nodes.$1.status"; }
until_node() {
  for _ in $(seq 200); do [ "$(node "$1")" = "$2" ] && return; sleep 0.05; done
  fail "$1 is $(node "$1"), not $2"
}
until_node review waiting
[ "$(node "done")" = pending ] || fail "work began before the review"

# Somebody without the role, and somebody without the permission: the gate stays as it is.
OTHER=$(api "$DUCTOR_ADMIN_KEY" POST /api/admin/api-keys '{"name": "author", "roles": ["author"], "scopes": ["workflow_run:write"]}' | jq -er .data.key)
VIEWER=$(api "$DUCTOR_ADMIN_KEY" POST /api/admin/api-keys '{"name": "viewer", "roles": ["viewer"]}' | jq -er .data.key)
GATE="/api/v2/workflow-runs/$RUN_ID/steps/review"
api "$OTHER" POST "$GATE:approve" '{"request_id": "sig-1"}' > /dev/null
refused 403 AUDIENCE_MISMATCH
api "$VIEWER" POST "$GATE:approve" '{"request_id": "sig-1"}' > /dev/null
refused 403 SCOPE_MISSING
mine POST "$GATE:resolve" '{"request_id": "sig-1"}' > /dev/null
refused 409 APPROVAL_NOT_RESOLVABLE
[ "$(node review) $(node "done")" = "waiting pending" ] || fail "a refused decision moved the run"
mine POST "$GATE:approve" '{"request_id": "sig-2", "comment": "cleared"}' | jq -e '.status == "accepted"' > /dev/null
until_node "done" completed
mine GET "/api/v2/workflow-runs/$RUN_ID/snapshot" |
  jq -e '.nodes.done.latest_output_json | fromjson | .result == {"reviewed": true}' > /dev/null
echo "waited for the review, and for nothing else"

# try FILTER CODE: the draft with this change cannot be published, and no version is written.
try() {
  local draft
  tries=$((tries + 1))
  draft=$(jq --arg slug "odd_${once}_$tries" ".family_slug = \$slug | $1" review.json)
  draft=$(mine POST /api/workflow-definitions "$draft" | jq -er .data.id)
  mine POST "/api/workflow-definitions/$draft/publish" > /dev/null
  refused 400 "$2"
  jq -e --arg code "$2" '[.errors[] | select(.code == $code) | .field | startswith("review")] | any' answer.json > /dev/null ||
    fail "the refusal does not name the step: $(cat answer.json)"
  mine GET "/api/workflow-definitions?family_slug=odd_${once}_$tries&status=published" | jq -e '.data == []' > /dev/null
}
tries=0
try 'del(.steps[0].action)' APPROVAL_ACTION_INVALID
try '.steps[0].action = "review"' APPROVAL_ACTION_INVALID
try '.steps[0].args.action = "approval"' APPROVAL_SPEC_INVALID
try 'del(.steps[0].args.audience)' APPROVAL_SPEC_INVALID
try 'del(.steps[0].args.timeout_ms)' APPROVAL_SPEC_INVALID
try '.steps[0].args.timeout_ms = 9223372036855' APPROVAL_SPEC_INVALID
try '.steps[0].args.timeout_ms = -1' APPROVAL_SPEC_INVALID
try '.steps[0].args.expires_at_cel = "now"' APPROVAL_SPEC_INVALID
echo "invalid gates are refused by name"

# --- a step that calls a connector

cat > invoice.yaml <<YAML
family_slug: invoice_$once
variables: {stripe_connection_ref: {type: string, default: stripe_$once}}
YAML
cat >> invoice.yaml <<'YAML'
steps:
  - ref: create_invoice
    type: action
    action: stripe.invoices.create
    connection_ref: "${{ VARS.stripe_connection_ref }}"
    connection_ref_mode: direct
    args:
      customer_id: "${{ TRIGGER.payload.customer_id }}"
      amount: "${{ TRIGGER.payload.amount_cents }}"
      currency: "${{ TRIGGER.payload.currency }}"
    retry_max_attempts: 3
    retry_backoff_ms: 1000
    timeout_ms: 10000
    on_error: fail
YAML
ductor workflow validate invoice.yaml > /dev/null
api "$DUCTOR_ADMIN_KEY" POST /api/connections \
  "{\"slug\": \"stripe_$once\", \"type\": \"stripe\", \"secrets\": {\"api_key\": \"sk_test_1234567890\"}}" | jq -e .data.id > /dev/null
ductor workflow publish invoice.yaml | grep -q "version 1" || fail "the connector step is not published"
echo "review gate: ok"
