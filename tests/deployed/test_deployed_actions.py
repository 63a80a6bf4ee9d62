"""AWS actions of the deployed application: as a role of their own, which may do what the team's policy says."""

from __future__ import annotations

from typing import Any

import pytest
from tests.deployed.stack import ORDERS, Stack

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(400)]


def sending(slug: str, url: str) -> dict[str, Any]:
    step: dict[str, Any] = {"ref": "send", "type": "STEP_TYPE_ACTION", "action": "sqs.send"}
    step |= {"args": {"queue_url": url, "body": {"order": 1}}}
    return {"environment": "default", "family_slug": slug, "title": "Send", "steps": [step], "edges": []}


def test_a_queue_that_the_policy_allows_is_sent_to(stack: Stack) -> None:
    queues = stack.aws.client("sqs")
    url = queues.create_queue(QueueName=ORDERS)["QueueUrl"]
    run_id = stack.trigger(stack.publish(sending("send", url)))
    stack.until(run_id, "completed")
    (message,) = queues.receive_message(QueueUrl=url, WaitTimeSeconds=5)["Messages"]
    assert message["Body"] == '{"order":1}'


def test_what_only_the_step_function_may_do_no_workflow_may(stack: Stack) -> None:
    """The step function itself sends to the queue of intents; a workflow that could would steer other tenants' runs."""
    run_id = stack.trigger(stack.publish(sending("send_elsewhere", stack.outputs["IntentsQueueUrl"])))
    stack.until(run_id, "failed")
    (attempt,) = stack.get(f"/api/v2/workflow-runs/{run_id}/attempts")["items"]
    error = attempt["error"]
    assert (error["code"].startswith("SQS.AccessDenied"), error["retryable"]) == (True, False), error


def test_a_step_starts_a_run(stack: Stack) -> None:
    step: dict[str, Any] = {"ref": "e", "type": "STEP_TYPE_ACTION", "action": "core.echo", "args": {"a": 1}}
    started = {"environment": "default", "family_slug": "by_run", "title": "By run", "steps": [step], "edges": []}
    stack.publish(started)
    start = {"ref": "start", "type": "STEP_TYPE_ACTION", "action": "ductor.trigger", "redaction_policy": "none"}
    start["args"] = {"family_slug": "by_run"}  # type: ignore[assignment]
    run_id = stack.trigger(stack.publish({**started, "family_slug": "starts", "steps": [start]}))
    stack.until(run_id, "completed")
    output = stack.get(f"/api/v2/workflow-runs/{run_id}/nodes/start/output")["output"]
    stack.until(output["run_id"], "completed")
