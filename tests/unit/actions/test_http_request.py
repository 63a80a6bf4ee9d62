"""`http.request` against a real server: what it sends, what it gives back, which answers fail it."""

from __future__ import annotations

import base64
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.unit.actions.web import Handler, Names, Seen, Web, call

from ductor.actions.context import ActionContext
from ductor.actions.errors import ActionError, AttemptCancelledError
from ductor.actions.http import HttpSettings
from ductor.actions.registry import default_registry

CAPPED = HttpSettings(allowed_hosts=("api.test",), max_body_bytes=1_000)


@pytest.fixture
def web() -> Iterator[Web]:
    with Web() as server:
        yield server


@pytest.fixture
def names() -> Names:
    return Names({"api.test": ["127.0.0.1"]})


def url(web: Web, path: str = "/") -> str:
    return f"http://api.test:{web.port}{path}"


def refusal(run: Callable[[], object]) -> ActionError:
    with pytest.raises(ActionError) as refused:
        run()
    return refused.value


def test_json_comes_back_as_a_value(web: Web, names: Names) -> None:
    web.on("/", 200, b'{"id": 9007199254740993, "ok": true}', content_type="application/json", x_trace="t-1")

    output = call({"url": url(web)}, names)

    assert output["status"] == 200
    assert output["body"] == {"id": 9007199254740993, "ok": True}
    assert output["headers"]["x-trace"] == "t-1"
    assert "truncated" not in output


def test_everything_given_is_sent(web: Web, names: Names) -> None:
    web.on("/orders", 201)

    call(
        {
            "method": "post",
            "url": url(web, "/orders?a=1"),
            "query": {"b": [1, "x y"], "c": True},
            "headers": {"X-Key": "k", "X-Number": 7},
            "json": {"amount": 3},
        },
        names,
    )

    [seen] = web.seen
    assert (seen.method, seen.path, seen.body) == ("POST", "/orders?a=1&b=1&b=x+y&c=true", b'{"amount":3}')
    assert seen.headers["content-type"] == "application/json"
    assert seen.headers["x-key"] == "k"
    assert seen.headers["x-number"] == "7"
    assert seen.headers["host"] == f"api.test:{web.port}"


def test_json_null_is_a_body_and_none_is_none(web: Web, names: Names) -> None:
    web.on("/", 200)

    call({"method": "POST", "url": url(web), "json": None}, names)
    call({"method": "POST", "url": url(web)}, names)

    assert [seen.body for seen in web.seen] == [b"null", b""]
    assert "content-type" not in web.seen[1].headers


def test_a_text_body_keeps_the_given_content_type(web: Web, names: Names) -> None:
    web.on("/", 200)

    call({"method": "PUT", "url": url(web), "body": "<a>ü</a>", "headers": {"Content-Type": "text/xml"}}, names)

    assert web.seen[0].body == "<a>ü</a>".encode()
    assert web.seen[0].headers["content-type"] == "text/xml"


def test_how_deep_the_run_is_is_sent_so_that_a_loop_through_the_api_ends(web: Web, names: Names) -> None:
    web.on("/", 200)

    call({"url": url(web)}, names, ctx=ActionContext(causation_depth=3))
    call({"url": url(web)}, names, ctx=ActionContext())
    assert [seen.headers.get("ductor-causation-depth") for seen in web.seen] == ["3", None]


def test_the_idempotency_key_of_the_step_is_sent(web: Web, names: Names) -> None:
    web.on("/", 200)

    call({"url": url(web)}, names, ctx=ActionContext(idempotency_key="run-1/charge"))
    call({"url": url(web), "headers": {"idempotency-key": "mine"}}, names, ctx=ActionContext(idempotency_key="k"))

    assert [seen.headers["idempotency-key"] for seen in web.seen] == ["run-1/charge", "mine"]


@pytest.mark.parametrize(
    ("body", "kind", "expected"),
    [
        (b"plain", "text/plain", "plain"),
        (b"caf\xe9", "text/plain; charset=latin-1", "café"),
        (b"x", "text/plain; charset=base64", "x"),
        (b"x", "text/plain; charset=nonsense", "x"),
        (b'{"broken": ', "application/json", '{"broken": '),
        (b'{"n": NaN}', "application/json", '{"n": NaN}'),
        (b"[" * 5_000, "application/json", "[" * 5_000),
        (b'{"n": 123456789012345678901234567890}', "application/json", '{"n": 123456789012345678901234567890}'),
        (b"[1, 2]", "application/problem+json; charset=utf-8", [1, 2]),
        (b"", "application/json", None),
    ],
    ids=str,
)
def test_a_body_is_json_where_it_is_and_text_otherwise(
    web: Web, names: Names, body: bytes, kind: str, expected: Any
) -> None:
    web.on("/", 200, body, content_type=kind)

    assert call({"url": url(web)}, names)["body"] == expected


def test_bytes_that_are_no_text_come_in_base64(web: Web, names: Names) -> None:
    picture = bytes(range(256))
    web.on("/", 200, picture, content_type="image/png")

    output = call({"url": url(web)}, names)

    assert output["body"] is None
    assert base64.b64decode(output["body_base64"]) == picture


def test_cookies_do_not_enter_the_output(web: Web, names: Names) -> None:
    web.on("/", 200, set_cookie="session=secret")

    assert "set-cookie" not in call({"url": url(web)}, names)["headers"]


def test_an_oversized_body_is_cut_on_a_character_boundary_and_marked(web: Web, names: Names) -> None:
    web.on("/", 200, "é".encode() * 400 + b"x" + "é".encode() * 400, content_type="text/plain")

    output = call({"url": url(web)}, names, CAPPED)

    assert output["truncated"] is True
    assert output["body"] == "é" * 400 + "x" + "é" * 99


def test_a_cut_json_body_stays_a_text(web: Web, names: Names) -> None:
    web.on("/", 200, b"[" + b"1," * 1_000 + b"1]", content_type="application/json")

    assert call({"url": url(web)}, names, CAPPED)["body"] == "[" + "1," * 499 + "1"


def test_a_body_without_end_is_cut(web: Web, names: Names) -> None:
    def endless(handler: Handler, seen: Seen) -> None:
        del seen
        handler.send_response(200)
        handler.end_headers()
        while not handler.server.gone.is_set():
            handler.wfile.write(b"x" * 10_000)

    web.replies["/"] = endless

    assert call({"url": url(web)}, names, CAPPED)["body"] == "x" * 1_000


def test_a_compressed_body_is_not_unfolded(web: Web, names: Names) -> None:
    web.on("/", 200, b"\x1f\x8b", content_encoding="gzip")

    assert refusal(lambda: call({"url": url(web)}, names)).code == "HTTP_BODY_INVALID"
    assert web.seen[0].headers["accept-encoding"] == "identity"


@pytest.mark.parametrize(
    ("status", "retryable"),
    [
        *[(status, False) for status in (304, 400, 401, 404, 409)],
        *[(status, True) for status in (408, 425, 429, 500, 501, 503)],
    ],
)
def test_an_unexpected_status_fails_with_its_number(web: Web, names: Names, status: int, retryable: bool) -> None:
    web.on("/", status, b"why")

    error = refusal(lambda: call({"url": url(web)}, names))

    assert (error.code, error.retryable) == (f"HTTP_{status}", retryable)
    assert error.details["status"] == status


@pytest.mark.parametrize("expected", [404, "404", "4xx", "400-404", [200, "404"], ["2xx", "4XX"]])
def test_an_expected_status_is_a_success(web: Web, names: Names, expected: Any) -> None:
    web.on("/", 404, b"none")

    assert call({"url": url(web), "expect_status": expected}, names)["status"] == 404


def test_what_is_not_expected_fails_even_with_a_good_status(web: Web, names: Names) -> None:
    web.on("/", 200)

    assert refusal(lambda: call({"url": url(web), "expect_status": [201, "204-206"]}, names)).code == "HTTP_200"


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({"retry_after": "120"}, {"retry_after": "120", "retry_after_ms": 120_000}),
        ({"retry_after": "soon"}, {"retry_after": "soon"}),
        ({}, {}),
    ],
)
def test_retry_after_is_told(web: Web, names: Names, headers: dict[str, str], expected: dict[str, Any]) -> None:
    web.on("/", 429, b"", **headers)

    details = refusal(lambda: call({"url": url(web)}, names)).details

    assert details == {"status": 429, **expected}


def test_a_retry_after_date_counts_from_the_date_of_the_answer(web: Web, names: Names) -> None:
    def busy(handler: Handler, seen: Seen) -> None:
        del seen
        handler.send_response_only(503)
        handler.send_header("date", "Wed, 21 Oct 2026 07:28:00 GMT")
        handler.send_header("retry-after", "Wed, 21 Oct 2026 07:28:30 GMT")
        handler.send_header("content-length", "0")
        handler.end_headers()

    web.replies["/"] = busy

    assert refusal(lambda: call({"url": url(web)}, names)).details["retry_after_ms"] == 30_000


def dripping_body(handler: Handler, seen: Seen) -> None:
    del seen
    handler.send_response(200)
    handler.end_headers()
    while not handler.server.gone.wait(0.02):
        handler.wfile.write(b"x")


def dripping_headers(handler: Handler, seen: Seen) -> None:
    del seen
    handler.wfile.write(b"HTTP/1.1 200 OK\r\nx-slow: ")
    while not handler.server.gone.wait(0.02):
        handler.wfile.write(b"x")


def silence(handler: Handler, seen: Seen) -> None:
    del seen
    handler.server.gone.wait(60)


@pytest.mark.parametrize("slow", [dripping_body, dripping_headers, silence])
def test_one_time_limit_holds_over_the_whole_exchange(web: Web, names: Names, slow: Any) -> None:
    web.replies["/"] = slow
    begun = time.monotonic()

    error = refusal(lambda: call({"url": url(web), "timeout_ms": 200}, names))

    assert (error.code, error.retryable) == ("HTTP_TIMEOUT", True)
    assert time.monotonic() - begun < 5


def test_a_name_service_that_never_answers_is_not_waited_for(web: Web) -> None:
    class Slow(Names):
        def __call__(self, host: str, port: int) -> list[str]:
            web.gone.wait(60)
            return []

    error = refusal(lambda: call({"url": url(web), "timeout_ms": 100}, Slow({})))

    assert error.code == "HTTP_TIMEOUT"


def test_a_cancelled_attempt_leaves_the_exchange(web: Web, names: Names) -> None:
    ctx = ActionContext()

    def cancel(handler: Handler, seen: Seen) -> None:
        ctx.stop.set()
        silence(handler, seen)

    web.replies["/"] = cancel

    with pytest.raises(AttemptCancelledError):
        call({"url": url(web)}, names, ctx=ctx)


def test_nobody_listening_is_retryable(names: Names) -> None:
    with Web() as web:
        dead = url(web)

    error = refusal(lambda: call({"url": dead}, names))

    assert (error.code, error.retryable) == ("HTTP_CONNECT_FAILED", True)


def test_an_unknown_name_is_retryable(names: Names) -> None:
    error = refusal(lambda: call({"url": "http://other.test/"}, names))

    assert (error.code, error.retryable) == ("HTTP_DNS_FAILED", True)


def test_a_connection_that_breaks_off_is_retryable(web: Web, names: Names) -> None:
    def half(handler: Handler, seen: Seen) -> None:
        del seen
        handler.send_response(200)
        handler.send_header("content-length", "100")
        handler.end_headers()
        handler.wfile.write(b"x")
        handler.close_connection = True

    web.replies["/"] = half
    error = refusal(lambda: call({"url": url(web)}, names))

    assert (error.code, error.retryable) == ("HTTP_CONNECTION_LOST", True)


@pytest.mark.parametrize(
    "args",
    [
        {},
        {"url": ""},
        {"url": "http://api.test/", "method": "TRACE"},
        {"url": "http://api.test/", "json": 1, "body": "x"},
        {"url": "http://api.test/", "json_body": 1},
        {"url": "http://api.test/", "timeout_ms": 0},
        {"url": "http://api.test/", "timeout_ms": 600_001},
        {"url": "http://api.test/", "expect_status": "2x"},
        {"url": "http://api.test/", "expect_status": []},
        {"url": "http://api.test/", "expect_status": [99]},
        {"url": "http://api.test/", "headers": {"Host": "other"}},
        {"url": "http://api.test/", "headers": {"Transfer-Encoding": "chunked"}},
        {"url": "http://api.test/", "headers": {"a b": "x"}},
        {"url": "http://api.test/", "headers": {"x": "a\r\nb: c"}},
        {"url": "http://api.test/", "headers": {"x": "ü"}},
        {"url": "http://api.test/", "headers": {"X": "1", "x": "2"}},
        {"url": "http://api.test/", "headers": {"x": True}},
        {"url": "http://api.test/", "verify": False},
    ],
    ids=str,
)
def test_unsound_args_are_found_before_a_run(args: dict[str, Any]) -> None:
    assert default_registry().validate_args("http.request", args) != []
    assert refusal(lambda: call(args, Names({}))).code == "ACTION_ARGS_INVALID"


def test_computed_args_are_no_fault() -> None:
    args = {
        "method": "${{ VARS.m }}",
        "url": "https://${{ VARS.host }}/x",
        "headers": {"x": "${{ VARS.h }}"},
        "json": {"a": "${{ TRIGGER }}"},
        "timeout_ms": "${{ VARS.t }}",
        "expect_status": "${{ VARS.e }}",
    }

    assert default_registry().validate_args("http.request", args) == []
