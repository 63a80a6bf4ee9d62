"""No answer is too large for Lambda: large outputs are read elsewhere, long pages are refused, and nothing is a 5xx."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.contract.moto_backend import CLIENTS
from tests.functions.definitions import chain
from tests.functions.world import CONTEXT, AwsWorld

from ductor.api import answer_size
from ductor.app import handing

LAMBDA = 6_291_556
QUOTES = '"' * 500_000
"""1 MB as JSON, and twice that as JSON in a JSON string."""


def answered(world: AwsWorld, path: str) -> dict[str, Any]:
    """The whole response, as Lambda would carry it."""
    event: dict[str, Any] = {
        "version": "2.0",
        "rawPath": path,
        "rawQueryString": "",
        "headers": {"authorization": f"Bearer {world.key}", "x-tenant-id": world.tenant},
        "requestContext": {"http": {"method": "GET", "path": path}, "stage": "$default", "requestId": "gw-1"},
        "body": "",
        "isBase64Encoded": False,
    }
    event["requestContext"]["authorizer"] = {"lambda": world.authorizer(event, CONTEXT)["context"]}
    response = world.api(event, CONTEXT)
    assert len(json.dumps(response)) < LAMBDA
    return response


def behind(world: AwsWorld, url: str) -> Any:
    """What a GET of a signed URL gives, without a key of ours."""
    assert "X-Amz-Signature=" in url
    assert f"X-Amz-Expires={handing.LINK_SECONDS}" in url
    key = url.partition("?")[0].partition(".amazonaws.com/")[2]
    return json.loads(CLIENTS("s3").get_object(Bucket="payloads", Key=key)["Body"].read())


def four_times(slug: str, steps: int = 1) -> dict[str, Any]:
    """Steps side by side that each give the trigger's text four times."""
    document = {**chain(steps, slug), "edges": []}
    for step in document["steps"]:
        step["redaction_policy"] = "none"
        step["args"] = dict.fromkeys("abcd", "${{ TRIGGER.payload.text }}")
    return document


def completed(world: AwsWorld, document: dict[str, Any], text: str = QUOTES) -> str:
    run_id = world.trigger(world.publish(document), input={"text": text})
    world.pump()
    assert world.status(run_id) == "completed"
    return run_id


def test_a_large_output_of_a_node_is_read_elsewhere(world: AwsWorld) -> None:
    run_id = completed(world, four_times("large"))
    response = answered(world, f"/api/v2/workflow-runs/{run_id}/nodes/s0/output")
    told = json.loads(response["body"])
    assert response["statusCode"] == 303
    assert response["headers"]["Location"] == told["output_url"]
    assert (told["run_id"], told["node"], told["metadata"]["request_id"]) == (run_id, "s0", "gw-1")
    value = behind(world, told["output_url"])
    assert value == dict.fromkeys("abcd", QUOTES)
    assert told["output_bytes"] == len(json.dumps(value, separators=(",", ":")))
    assert told["expires_at"] > told["metadata"]["fetched_at"]


@pytest.mark.parametrize("rendered", [True, False])
def test_a_large_output_of_a_run_is_read_elsewhere(world: AwsWorld, rendered: bool) -> None:
    output = {"output": "${{ STEPS.s0.output }}"} if rendered else {}
    run_id = completed(world, four_times("large") | output)
    response = answered(world, f"/api/workflows/runs/{run_id}/output")
    told = json.loads(response["body"])["data"]
    assert (response["statusCode"], response["headers"]["Location"]) == (303, told["output_url"])
    value = behind(world, told["output_url"])
    assert (value if rendered else value["s0"]) == dict.fromkeys("abcd", QUOTES)


def test_what_fits_is_answered_as_ever(world: AwsWorld) -> None:
    run_id = completed(world, four_times("fits"), '"' * 200_000)
    response = answered(world, f"/api/workflows/runs/{run_id}/output")
    assert response["statusCode"] == 200
    assert len(json.loads(response["body"])["data"]["output"]["s0"]["d"]) == 200_000


def test_a_snapshot_shows_no_more_than_fits(world: AwsWorld) -> None:
    run_id = completed(world, four_times("wide", 300), '"' * 1_000)
    response = answered(world, f"/api/v2/workflow-runs/{run_id}/snapshot")
    nodes = json.loads(response["body"])["nodes"].values()
    assert response["statusCode"] == 200
    shown = [node for node in nodes if node["latest_output_json"]]
    elsewhere = [node for node in nodes if node["output_ref"]]
    assert 100 < len(shown) < 300
    assert len(shown) + len(elsewhere) == 300
    assert answered(world, elsewhere[0]["output_ref"])["statusCode"] == 200


def test_a_page_that_does_not_fit_is_refused_with_advice(world: AwsWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    run_id = completed(world, four_times("pages", 3), '"' * 1_000)
    monkeypatch.setattr(answer_size, "MAX_RESPONSE_BYTES", 50_000)
    monkeypatch.setattr(answer_size, "_NEVER_TOO_LARGE", 1_000)
    path = f"/api/v2/workflow-runs/{run_id}/attempts"
    assert world.request("GET", path)[0] == 413
    refused = world.request("GET", path)[1]
    assert refused["error_code"] == "PAYLOAD_TOO_LARGE"
    assert [error["code"] for error in refused["errors"]] == ["ANSWER_TOO_LARGE"]
    assert world.request("GET", f"{path}?limit=1")[0] == 200
