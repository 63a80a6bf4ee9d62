"""The deployed application: runs through the gateway, the queues and the functions, each with its own permissions."""

from __future__ import annotations

import os
import subprocess
from typing import Any

import msgspec
import pytest
from tests.deployed.emulator import ROOT
from tests.deployed.scenarios import waiting
from tests.deployed.stack import PATIENCE_S, Stack, wait_until
from tests.functions.definitions import chain

from ductor.model.intent import Intent, IntentKind

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(400)]


def test_the_published_walkthrough_with_its_wait_of_two_seconds(stack: Stack) -> None:
    environment = {**os.environ, **stack.keys, "DUCTOR_API_URL": stack.url}
    script = ROOT / "tests" / "acceptance" / "hello_world.sh"
    done = subprocess.run(["bash", str(script)], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_request_without_a_valid_key_is_refused_in_the_shape_of_the_api(stack: Stack) -> None:
    with stack.client() as client:
        answer = client.get("/api/workflow-definitions", headers={"Authorization": "Bearer dk_none_none"})
    assert (answer.status_code, answer.json()["error_code"]) == (401, "UNAUTHENTICATED")


def test_a_chain_of_actions_completes(stack: Stack) -> None:
    run_id = stack.trigger(stack.publish(chain(3, "three")))
    stack.until(run_id, "completed")


def test_a_payload_too_large_for_a_message_goes_through_the_bucket(stack: Stack) -> None:
    document = chain(1, "large")
    document["steps"][0]["args"] = {"said": "${{ TRIGGER.payload.text }}"}
    run_id = stack.trigger(stack.publish(document), input={"text": "x" * 300_000})
    stack.until(run_id, "completed")


def test_intents_delivered_again_change_nothing(stack: Stack) -> None:
    run_id = stack.trigger(stack.publish(chain(2, "again")))
    stack.until(run_id, "completed")
    before = stack.get(f"/api/v2/workflow-runs/{run_id}/snapshot")
    start = msgspec.json.encode(Intent(id=f"{run_id}:start", run_id=run_id, kind=IntentKind.START)).decode()
    queue, sqs = stack.outputs["IntentsQueueUrl"], stack.aws.client("sqs")
    for number in range(3):
        sqs.send_message(
            QueueUrl=queue, MessageBody=start, MessageGroupId=run_id, MessageDeduplicationId=f"{run_id}:{number}"
        )
    wait_until(lambda: _empty(stack, queue), 30)
    after = stack.get(f"/api/v2/workflow-runs/{run_id}/snapshot")
    assert (after["transition_seq"], after["nodes"]) == (before["transition_seq"], before["nodes"])
    attempts = stack.get(f"/api/v2/workflow-runs/{run_id}/attempts")["items"]
    assert [attempt["attempt"] for attempt in attempts] == [1, 1]


def test_a_run_whose_state_is_unreadable_stalls_alone_and_goes_on_after_a_redrive(stack: Stack) -> None:
    definition_id = stack.publish(waiting("6s", "poison"))
    poisoned, healthy = stack.trigger(definition_id), stack.trigger(definition_id)
    for run_id in (poisoned, healthy):
        stack.until(run_id, "waiting")
    good = _row(stack, poisoned, "HEAD")
    assert good is not None
    _write_body(stack, poisoned, {**good, "body": {"B": b"{]"}})
    stack.until(healthy, "completed")
    wait_until(lambda: _row(stack, poisoned, "STALL") is not None, 60)
    with stack.client() as client:
        answer = client.get(f"/api/workflows/runs/{poisoned}")
    assert (answer.status_code, answer.json()["errors"][0]["code"]) == (409, "STATE_UNREADABLE")
    _write_body(stack, poisoned, good)
    assert "cannot be read" in stack.summary(poisoned)["stalled"]["reason"]
    stack.control(poisoned, "redrive", "repaired")
    stack.until(poisoned, "completed")


def test_without_one_permission_of_the_coordinator_no_step_runs(stack: Stack) -> None:
    definition_id = stack.publish(chain(1, "forbidden"))
    iam, role = stack.aws.client("iam"), stack.outputs["CoordinatorRoleName"]
    policy = iam.get_role_policy(RoleName=role, PolicyName="coordinator")["PolicyDocument"]
    steps = stack.outputs["StepsQueueUrl"].rsplit("/", 1)[1]
    less = msgspec.json.decode(msgspec.json.encode(policy))
    for statement in less["Statement"]:
        if isinstance(statement["Resource"], list):
            statement["Resource"] = [arn for arn in statement["Resource"] if not arn.endswith(f":{steps}")]
    assert less != policy
    _put_policy(iam, role, less)
    try:
        run_id = stack.trigger(definition_id)
        wait_until(lambda: "AccessDenied" in _logs(stack, "Coordinator"), 30)
        assert stack.status(run_id) != "completed"
        assert stack.get(f"/api/v2/workflow-runs/{run_id}/attempts")["items"] == []
    finally:
        _put_policy(iam, role, policy)
    stack.until(run_id, "completed", 180)


def _put_policy(iam: Any, role: str, policy: Any) -> None:
    text = msgspec.json.encode(policy).decode()
    iam.put_role_policy(RoleName=role, PolicyName="coordinator", PolicyDocument=text)


def _logs(stack: Stack, function: str) -> str:
    logs = stack.aws.client("logs")
    groups = [group["logGroupName"] for group in logs.describe_log_groups()["logGroups"]]
    found = [logs.filter_log_events(logGroupName=name)["events"] for name in groups if function in name]
    return "\n".join(event["message"] for events in found for event in events)


def _empty(stack: Stack, queue: str) -> bool:
    names = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
    counts = stack.aws.client("sqs").get_queue_attributes(QueueUrl=queue, AttributeNames=names)["Attributes"]
    return all(counts[name] == "0" for name in names)


def _row(stack: Stack, run_id: str, sk: str) -> dict[str, Any] | None:
    key = {"pk": {"S": f"R#{run_id}"}, "sk": {"S": sk}}
    found = stack.aws.client("dynamodb").get_item(TableName=stack.outputs["TableName"], Key=key, ConsistentRead=True)
    row: dict[str, Any] | None = found.get("Item")
    return row


def _write_body(stack: Stack, run_id: str, good: dict[str, Any]) -> None:
    """Give the header the body of that row, and say that it is packed as there."""
    stack.aws.client("dynamodb").update_item(
        TableName=stack.outputs["TableName"],
        Key={"pk": {"S": f"R#{run_id}"}, "sk": {"S": "HEAD"}},
        UpdateExpression="SET body = :body, packed = :packed",
        ExpressionAttributeValues={":body": good["body"], ":packed": good["packed"]},
    )


def test_an_event_of_the_bus_starts_a_run_and_the_run_tells_of_its_end(stack: Stack) -> None:
    tenant = stack.keys["DUCTOR_TENANT_ID"]
    stack.publish({**chain(1, "paid"), "triggers": [{"patterns": ["order.*"], "input": "${{ EVENT.payload }}"}]})
    condition = 'EVENT.payload.family_slug == "paid"'
    stack.publish({**chain(1, "after"), "triggers": [{"patterns": ["ductor.run.completed"], "condition": condition}]})
    entry = {
        "EventBusName": stack.outputs["BusName"],
        "Source": "acme.orders",
        "DetailType": "order.paid",
        "Resources": [f"ductor/tenant/{tenant}"],
        "Detail": msgspec.json.encode({"event_id": "evt-1", "payload": {"amount": 5}}).decode(),
    }
    for _ in range(2):
        answer = stack.aws.client("events").put_events(Entries=[entry])
        assert answer["FailedEntryCount"] == 0

    def ended(family: str) -> list[str]:
        runs = stack.get(f"/api/workflows/runs?workflow_type={family}")["data"]
        return [run["status"] for run in runs]

    def told() -> str:
        refused = stack.get("/api/v2/workflow-events/refused-starts")["items"]
        return f"{ended('paid')} {ended('after')} {refused} {_logs(stack, 'EventLogs')[-2000:]}"

    wait_until(lambda: ended("paid") == ["completed"], 2 * PATIENCE_S, told)
    wait_until(lambda: ended("after") == ["completed"], 2 * PATIENCE_S, told)


def test_an_event_of_the_bus_that_no_tenant_takes_lies_in_the_dead_letters(stack: Stack) -> None:
    entry = {"EventBusName": stack.outputs["BusName"], "Source": "nobody", "DetailType": "x", "Detail": "{}"}
    stack.aws.client("events").put_events(Entries=[entry])
    queue, sqs = stack.outputs["EventsDeadLettersUrl"], stack.aws.client("sqs")
    found: list[dict[str, Any]] = []

    def dead() -> bool:
        found.extend(sqs.receive_message(QueueUrl=queue).get("Messages", ()))
        return bool(found)

    wait_until(dead, PATIENCE_S, lambda: _logs(stack, "EventLogs")[-2000:])
    assert msgspec.json.decode(found[0]["Body"])["reason"].startswith("TENANT_UNCLEAR")
