"""What holds for all routes: threads, traces, faults, health and the documents about the API."""

from __future__ import annotations

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from aws_lambda_powertools.utilities.typing import LambdaContext
from pydantic import ValidationError
from tests.api.world import ApiWorld, reply

from ductor.api.auth import KeyIdentity
from ductor.api.call import Call
from ductor.api.models.common import AnswerModel, Metadata
from ductor.api.resolver import ThreadedResolver
from ductor.api.routing import Route, Router
from ductor.ports import UnavailableError


class Echo(AnswerModel):
    """What a route saw of its request."""

    ids: list[str]
    query: str | None
    body: Any
    metadata: Metadata


def router(world: ApiWorld, handle: Any, *, method: str = "POST", path: str = "/echo/<one>:go/<two>") -> Router:
    route = Route(method, path, "Test", handle, open=True)
    return Router((route,), KeyIdentity(world.keys), world.clock, world.ids)


def test_each_thread_has_its_own_request_in_the_resolver(world: ApiWorld) -> None:
    threads = 4
    resolver, together = ThreadedResolver(), threading.Barrier(threads)

    def see(one: str) -> dict[str, str]:
        together.wait(timeout=20)
        return {"one": one, "event": resolver.current_event.raw_path, "context": resolver.context["_path"]}

    resolver.add("GET", "/see/<one>", see)
    resolver.seal()

    def ask(number: int) -> None:
        path = f"/see/{number}"
        answer = reply(resolver.resolve(world.event("GET", path), LambdaContext())).json
        assert answer == {"one": str(number), "event": path, "context": path}

    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(ask, range(threads * 10)))


def test_requests_in_several_threads_never_mix(world: ApiWorld) -> None:
    threads, rounds = 8, 25
    inside = threading.Barrier(threads)

    def echo(call: Call) -> Echo:
        inside.wait(timeout=20)
        seen = Echo(
            ids=list(call.ids.values()), query=call.query("q").text("q"), body=call.document(), metadata=call.metadata()
        )
        inside.wait(timeout=20)
        return seen

    handler = router(world, echo)

    def one(number: int) -> None:
        event = world.event("POST", f"/echo/a{number}:go/b{number}", {"n": number}, query=f"q={number}")
        event["requestContext"]["requestId"] = f"r{number}"
        answer = reply(handler(event)).json
        assert answer["ids"] == [f"a{number}", f"b{number}"]
        assert (answer["query"], answer["body"]) == (str(number), {"n": number})
        assert answer["metadata"]["request_id"] == f"r{number}"

    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(one, range(threads * rounds)))


def test_call_chains_are_built_before_the_first_request(world: ApiWorld) -> None:
    resolver = ThreadedResolver()
    resolver.add("GET", "/static", lambda: {})
    resolver.add("GET", "/dynamic/<one>", lambda one: {"one": one})
    resolver.seal()
    assert all(route._middleware_stack_built for route in (*resolver._static_routes, *resolver._dynamic_routes))
    assert reply(resolver.resolve(world.event("GET", "/dynamic/x"), LambdaContext())).json == {"one": "x"}


def test_the_trace_is_the_callers(world: ApiWorld) -> None:
    trace = "0af7651916cd43dd8448eb211c80319c"
    headers: dict[str, str | None] = {"traceparent": f"00-{trace}-b7ad6b7169203331-01"}
    assert world.call("GET", "/healthz", headers=headers).json["metadata"]["trace_id"] == trace
    headers = {"x-amzn-trace-id": "Self=1-2-3;Root=1-5759e988-bd862e3fe1be46a994272793;Sampled=1"}
    found = world.call("GET", "/nothing", headers=headers).json["metadata"]
    assert found["trace_id"] == "1-5759e988-bd862e3fe1be46a994272793"
    assert found["request_id"] == "gw-1"


def test_a_malformed_trace_is_replaced(world: ApiWorld) -> None:
    headers: dict[str, str | None] = {"traceparent": "00-\x00-x", "x-amzn-trace-id": "Root=\ud800"}
    assert world.call("GET", "/healthz", headers=headers).json["metadata"]["trace_id"].startswith("trace-")


def test_a_fault_is_logged_and_not_told(world: ApiWorld, capsys: pytest.CaptureFixture[str]) -> None:
    def fail(_: Call) -> Echo:
        raise ZeroDivisionError("secret detail")

    answer = reply(router(world, fail)(world.event("POST", "/echo/a:go/b")))
    assert (answer.status, answer.json["error_code"]) == (500, "INTERNAL")
    assert "secret" not in answer.text
    logged = json.loads(capsys.readouterr().err)
    assert logged["trace_id"] == answer.json["metadata"]["trace_id"]
    assert "secret detail" in logged["exception"]


def test_an_unavailable_store_asks_to_come_again(world: ApiWorld, capsys: pytest.CaptureFixture[str]) -> None:
    def fail(_: Call) -> Echo:
        raise UnavailableError("throttled")

    answer = reply(router(world, fail)(world.event("POST", "/echo/a:go/b")))
    assert (answer.status, answer.json["error_code"]) == (503, "UNAVAILABLE")
    assert answer.headers["Retry-After"]
    assert json.loads(capsys.readouterr().err)["level"] == "warning"


def test_head_is_get_without_a_body(world: ApiWorld) -> None:
    answer = world.call("HEAD", "/healthz")
    assert (answer.status, answer.text) == (200, "")


def test_open_routes_need_no_key(world: ApiWorld) -> None:
    nobody: dict[str, str | None] = {"authorization": None, "x-tenant-id": None}
    for path in ("/healthz", "/openapi.json", "/docs"):
        assert world.call("GET", path, headers=nobody).status == 200


def test_the_openapi_document_describes_every_route(world: ApiWorld) -> None:
    document = world.call("GET", "/openapi.json").json
    assert document["openapi"].startswith("3.1")
    assert "post" in document["paths"]["/api/v2/workflow-definitions/{definition_id}:trigger"]
    snapshot = document["paths"]["/api/v2/workflow-runs/{run_id}/snapshot"]["get"]
    assert "SnapshotAnswer" in json.dumps(snapshot["responses"]["200"])
    references = {part.split('"')[0] for part in json.dumps(document).split("#/components/schemas/")[1:]}
    assert references <= set(document["components"]["schemas"])


def test_the_docs_page_loads_nothing_from_elsewhere(world: ApiWorld) -> None:
    page = world.call("GET", "/docs").text
    assert "<script src" not in page
    assert "<link" not in page


def test_answers_cannot_be_built_wrong(world: ApiWorld) -> None:
    with pytest.raises(ValidationError):
        Echo.model_validate({"ids": 1})
