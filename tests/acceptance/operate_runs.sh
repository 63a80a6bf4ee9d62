#!/usr/bin/env bash
# The commands of the runs guide about runs, as printed there, against a running server: a trigger with labels, controls,
# signals, events, lists and forks. Needs curl and jq.
#
#   source data/env && bash tests/acceptance/operate_runs.sh
set -euo pipefail
: "${DUCTOR_API_KEY:?Set your ordinary tenant API key}"
: "${DUCTOR_TENANT:?Set your tenant UUID}"

# The guide names the hosted service; the commands below stand as they are printed, and go to this server instead.
curl() { command curl --fail-with-body "${@/https:\/\/api.ductor.io/${DUCTOR_API_URL:-http://localhost:8080}}"; }

# call METHOD PATH [BODY]: the same for what the guide names without printing a command.
call() {
  curl -s -X "$1" "https://api.ductor.io$2" \
    -H "Authorization: Bearer $DUCTOR_API_KEY" -H "X-Tenant-ID: $DUCTOR_TENANT" -H "Content-Type: application/json" \
    ${3:+-d "$3"}
}
status() { call GET "/api/workflows/runs/$1" | jq -r .data.summary.status; }
# until_status RUN STATUS...: wait until the run is in one of these.
until_status() {
  local run=$1 now
  shift
  for _ in $(seq 200); do
    now=$(status "$run")
    [[ " $* " == *" $now "* ]] && return
    sleep 0.05
  done
  echo "run $run is $now, not $*" >&2
  exit 1
}
control() { call POST "/api/v2/workflow-runs/$1:$2" "$3" | jq -e '.status == "accepted"' >/dev/null; }
once=$(date +%s)-$$

# Three things at once: work for somebody outside, a person's decision, an event.
FAMILY=$(call GET "/api/workflow-definitions?family_slug=lead_router&status=draft" | jq -r '.data[0].id // empty')
if [ -z "$FAMILY" ]; then
  FAMILY=$(call POST /api/workflow-definitions '{
    "family_slug": "lead_router", "title": "Lead Router",
    "steps": [
      {"ref": "enrich", "redaction_policy": "none", "type": "STEP_TYPE_BRIDGE", "args": {"task_type": "lead.enrich"}},
      {"ref": "manager-approval", "redaction_policy": "none", "type": "STEP_TYPE_APPROVAL", "action": "approval",
        "args": {"audience": {"roles": ["admin", "operator", "author"]}}},
      {"ref": "paid", "redaction_policy": "none", "type": "STEP_TYPE_WAIT_EVENT",
        "args": {"event_name": "order.paid", "correlation_key": "order-42"}}
    ]}' | jq -er .data.id)
fi
DEF_ID=$(call POST "/api/workflow-definitions/$FAMILY/publish" | jq -er .published.id)

trigger() {
curl -s -X POST "https://api.ductor.io/api/v2/workflow-definitions/$DEF_ID:trigger" \
  -H "Authorization: Bearer $DUCTOR_API_KEY" \
  -H "X-Tenant-ID: $DUCTOR_TENANT" \
  -H "Content-Type: application/json" \
  -d '{
    "subject_type": "lead",
    "subject_id": "lead-123",
    "input": { "email": "ada@example.com", "source": "webinar" },
    "wait_for_checkpoint": false,
    "idempotency_key": "lead-123-signup",
    "external_deployment_id": "prod-us-east-1-wave-1",
    "correlation_labels": [
      { "key": "conversation", "id": "conversation-42" },
      { "key": "support_ticket", "id": "ticket-9182" }
    ]
  }'
}
STARTED=$(trigger)
jq -e '.status == "running" and .metadata.trace_id and .metadata.request_id and .metadata.fetched_at' <<<"$STARTED" >/dev/null
RUN_ID=$(jq -er .run_id <<<"$STARTED")
jq -e --arg run "$RUN_ID" '.run_id == $run' <<<"$(trigger)" >/dev/null
echo "triggered $RUN_ID, once"

for _ in $(seq 200); do
  LISTED=$(
curl -s "https://api.ductor.io/api/workflows/runs?workflow_type=lead_router&status=running&active_only=true" \
  -H "Authorization: Bearer $DUCTOR_API_KEY" -H "X-Tenant-ID: $DUCTOR_TENANT"
  )
  jq -e --arg run "$RUN_ID" '.data | any(.run_id == $run)' <<<"$LISTED" >/dev/null && break
  sleep 0.05
done
jq -e --arg run "$RUN_ID" '.data | any(.run_id == $run)' <<<"$LISTED" >/dev/null
call GET "/api/workflows/runs?label.conversation=conversation-42&subject_id=lead-123" |
  jq -e --arg run "$RUN_ID" '.data | any(.run_id == $run)' >/dev/null
echo "listed by type, label and subject"

pause() {
curl -s -X POST "https://api.ductor.io/api/v2/workflow-runs/$RUN_ID:pause" \
  -H "Authorization: Bearer $DUCTOR_API_KEY" \
  -H "X-Tenant-ID: $DUCTOR_TENANT" \
  -H "Content-Type: application/json" \
  -d '{ "request_id": "op-8f2a-1", "reason": "manual hold pending review" }'
}
pause | jq -e --arg run "$RUN_ID" '.status == "accepted" and .run_id == $run and .metadata.trace_id' >/dev/null
until_status "$RUN_ID" paused
control "$RUN_ID" resume '{"request_id": "op-8f2a-2", "reason": "reviewed"}'
until_status "$RUN_ID" running waiting
pause | jq -e '.status == "accepted"' >/dev/null # the same request again does nothing
call GET "/api/v2/workflow-runs/$RUN_ID/audit" |
  jq -e '[.items[] | select(.outcome == "applied") | .operation] | index("pause") and index("resume")' >/dev/null
[ "$(status "$RUN_ID")" != paused ]
echo "paused and resumed; a repeat did nothing"

approve() {
# Approve a human-approval step
curl -s -X POST "https://api.ductor.io/api/v2/workflow-runs/$RUN_ID/steps/manager-approval:approve" \
  -H "Authorization: Bearer $DUCTOR_API_KEY" \
  -H "X-Tenant-ID: $DUCTOR_TENANT" \
  -H "Content-Type: application/json" \
  -d '{ "request_id": "sig-1", "approver_id": "manager@example.com", "comment": "cleared", "payload": { "tier": "gold" } }'
}
approve | jq -e '.status == "accepted"' >/dev/null
approve | jq -e '.status == "accepted"' >/dev/null

publish_event() {
curl -s -X POST https://api.ductor.io/api/v2/workflow-events:publish \
  -H "Authorization: Bearer $DUCTOR_API_KEY" \
  -H "X-Tenant-ID: $DUCTOR_TENANT" \
  -H "Content-Type: application/json" \
  -d '{ "event_name": "order.paid", "correlation_key": "order-42", "event_id": "evt-abc", "payload": { "amount": 12900 } }'
}
jq -e '.matched == 1' <<<"$(publish_event)" >/dev/null
jq -e '.matched == 0' <<<"$(publish_event)" >/dev/null
call POST "/api/v2/workflow-runs/$RUN_ID/steps/enrich:resolve" \
  '{"request_id": "sig-2", "outcome": "success", "payload": {"score": 7}}' | jq -e '.status == "accepted"' >/dev/null
until_status "$RUN_ID" completed
call GET "/api/v2/workflow-runs/$RUN_ID/snapshot" | jq -e '
  (.nodes["manager-approval"].latest_output_json | fromjson | .decision == "approved" and .payload.tier == "gold")
  and (.nodes.paid.latest_output_json | fromjson | .payload.amount == 12900)
  and (.nodes.enrich.latest_output_json | fromjson | .score == 7)' >/dev/null
echo "approved, told and resolved; every repeat did nothing"

call GET "/api/v2/workflow-runs/$RUN_ID/reset-targets" | jq -e '.targets[0].transition_seq == 0' >/dev/null
call POST "/api/v2/workflow-runs/$RUN_ID:previewReset" '{"transition_seq": 0, "preserve_outputs": ["enrich"]}' |
  jq -e '.kept == [] and .adopted == ["enrich"] and (.rerun | length) == 2' >/dev/null
FORK=$(call POST "/api/v2/workflow-runs/$RUN_ID:reset" \
  '{"request_id": "fork-1", "reason": "bad deploy", "transition_seq": 0, "preserve_outputs": ["enrich"]}' | jq -er .new_run_id)
until_status "$FORK" waiting
control "$FORK" signal '{"request_id": "s-1", "name": "order.paid", "payload": {"amount": 1}}'
call POST "/api/v2/workflow-runs/$FORK/nodes/manager-approval:updateTimeout" '{"request_id": "n-1", "timeout_ms": 3600000}' >/dev/null
call POST "/api/v2/workflow-runs/$FORK/nodes/manager-approval:reset" '{"request_id": "n-2"}' | jq -e '.status == "accepted"' >/dev/null
NEXT=$(call POST "/api/v2/workflow-runs/$FORK:continueAsNew" \
  '{"request_id": "c-1", "seed_run_context": {"page": 2}, "discard_pending": true}' | jq -er .new_run_id)
until_status "$FORK" continued_as_new
until_status "$NEXT" running waiting
control "$NEXT" terminate '{"request_id": "t-1", "reason": "enough"}'
until_status "$NEXT" terminated
for path in "" /steps /events /tree; do call GET "/api/workflows/runs/$FORK$path" >/dev/null; done
call GET "/api/v2/workflow-runs/$RUN_ID/attempts" >/dev/null
echo "forked $FORK, which went on as $NEXT"

OTHER=$(call POST "/api/v2/workflow-definitions/$DEF_ID:trigger" "{\"correlation_labels\": [{\"key\": \"import\", \"id\": \"i-$once\"}]}" | jq -er .run_id)
until_status "$OTHER" running
BATCH=$(call POST /api/v2/workflow-runs:batch \
  "{\"request_id\": \"batch-$once\", \"operation\": \"cancel\", \"filter\": {\"label.import\": \"i-$once\"}}" | jq -er .batch_id)
call GET "/api/v2/workflow-runs/batches/$BATCH" | jq -e '.status == "completed" and .accepted == 1' >/dev/null
until_status "$OTHER" cancelled
if call POST "/api/v2/workflow-runs/$OTHER:redrive" '{"request_id": "again"}' >/dev/null; then
  echo "a cancelled run was redriven" >&2
  exit 1
fi
echo "cancelled by a batch; a redrive of it is refused"
