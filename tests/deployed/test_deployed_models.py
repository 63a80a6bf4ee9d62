"""AI steps of the deployed application: Bedrock by the step function's own role, which allows the named models only."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.deployed.stack import MODEL, PATIENCE_S, Stack, wait_until

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(400)]


def asking(slug: str, model: str) -> dict[str, Any]:
    step: dict[str, Any] = {"ref": "ask", "type": "STEP_TYPE_AI_ACTION", "redaction_policy": "none"}
    step["args"] = {"model": model, "prompt": "Hello", "max_tokens": 50}
    return {"environment": "default", "family_slug": slug, "title": "Ask", "steps": [step], "edges": []}


def test_a_model_that_the_stack_allows_answers(stack: Stack) -> None:
    run_id = stack.trigger(stack.publish(asking("ask", MODEL)))
    stack.until(run_id, "completed")
    (step,) = stack.get(f"/api/workflows/runs/{run_id}/steps")["data"]
    assert [(use["provider"], use["model"], use["calls"]) for use in step["usage"]] == [("bedrock", MODEL, 1)]
    assert step["usage"][0]["output_tokens"] > 0


def test_without_its_permission_the_run_fails_and_says_what_may_not_be_done(stack: Stack) -> None:
    iam = stack.aws.client("iam")
    (role,) = [one["RoleName"] for one in iam.list_roles()["Roles"] if "-StepRole-" in one["RoleName"]]
    names = iam.list_role_policies(RoleName=role)["PolicyNames"]
    policies = {name: iam.get_role_policy(RoleName=role, PolicyName=name)["PolicyDocument"] for name in names}
    (name,) = [name for name, policy in policies.items() if "bedrock:InvokeModel" in json.dumps(policy)]
    definition_id = stack.publish(asking("ask_forbidden", MODEL))
    iam.delete_role_policy(RoleName=role, PolicyName=name)
    try:
        run_id = stack.trigger(definition_id)
        stack.until(run_id, "failed")
    finally:
        iam.put_role_policy(RoleName=role, PolicyName=name, PolicyDocument=json.dumps(policies[name]))
    error = stack.summary(run_id)["error"]
    assert error["code"] == "AI_AUTH_FAILED"
    assert "is not authorized to perform: bedrock:InvokeModel" in error["message"]
    stack.control(run_id, "redrive", "permitted")
    wait_until(lambda: stack.status(run_id) == "completed", PATIENCE_S, lambda: str(stack.summary(run_id)))


def test_a_model_that_the_stack_does_not_allow_is_refused_by_name(stack: Stack) -> None:
    run_id = stack.trigger(stack.publish(asking("ask_other", "anthropic.claude-3-haiku-20240307-v1:0")))
    stack.until(run_id, "failed")
    (attempt,) = stack.get(f"/api/v2/workflow-runs/{run_id}/attempts")["items"]
    assert (attempt["error"]["code"], attempt["error"]["retryable"]) == ("AI_AUTH_FAILED", False)
