"""What both providers promise, each over HTTP in its own format: answers, tools, counts, and errors in common codes."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from tests.unit.ai.asking import KEY, asked, reached
from tests.unit.ai.speaker import FORMATS, Format, Say, Speaker

from ductor.actions.ai.model import Message, Stop, ToolCall, ToolResult, ToolSpec
from ductor.actions.context import ActionContext
from ductor.actions.errors import ActionError, AttemptCancelledError

TOOL = ToolSpec("look_up", "Looks it up.", {"type": "object", "properties": {"q": {"type": "string"}}})

both = pytest.mark.parametrize("kind", FORMATS)


def failure(kind: Format, say: Say, timeout_ms: int = 10_000) -> ActionError:
    with (
        Speaker([say]) as speaker,
        reached(kind, speaker) as (models, ctx),
        pytest.raises(ActionError) as caught,
    ):
        models.ask(asked(timeout_ms=timeout_ms), ctx)
    return caught.value


@both
def test_an_answer_comes_with_its_tokens_and_why_it_stopped(kind: Format) -> None:
    with Speaker([Say("good day", tokens=(12, 3))]) as speaker, reached(kind, speaker) as (models, ctx):
        answer = models.ask(asked(system="be polite", temperature=0.5), ctx)
    assert (answer.text, answer.stop) == ("good day", Stop.END_TURN)
    assert (answer.input_tokens, answer.output_tokens) == (12, 3)


@both
def test_a_tool_call_and_its_result_go_there_and_back(kind: Format) -> None:
    script = [Say("let me see", calls=[("look_up", {"q": "x", "n": 12345678901234567})]), Say("done")]
    with Speaker(script) as speaker, reached(kind, speaker) as (models, ctx):
        first = models.ask(asked(tools=(TOOL,)), ctx)
        said = (
            Message(False, "hello"),
            Message(True, first.text, calls=first.calls),
            Message(False, results=(ToolResult(first.calls[0].id, '{"found": 1}'),)),
        )
        request = asked(tools=(TOOL,))
        second = models.ask(type(request)(model="m", messages=said, max_tokens=50, tools=(TOOL,)), ctx)
    assert first.stop is Stop.TOOL_USE
    assert [(call.name, call.input) for call in first.calls] == [("look_up", {"q": "x", "n": 12345678901234567})]
    assert second.text == "done"
    assert '{\\"found\\": 1}' in str(speaker.heard[1].body).replace('"', '\\"')


@both
@pytest.mark.parametrize(
    ("wire", "stop"),
    [
        ({"openai": "length", "bedrock": "max_tokens"}, Stop.MAX_TOKENS),
        ({"openai": "content_filter", "bedrock": "guardrail_intervened"}, Stop.CONTENT_FILTERED),
        ({"openai": "content_filter", "bedrock": "content_filtered"}, Stop.CONTENT_FILTERED),
        ({"openai": "something_new", "bedrock": "something_new"}, Stop.END_TURN),
    ],
)
def test_stops_have_common_names(kind: Format, wire: dict[str, str], stop: Stop) -> None:
    with Speaker([Say("half", stop=wire[kind])]) as speaker, reached(kind, speaker) as (models, ctx):
        assert models.ask(asked(), ctx).stop is stop


@pytest.mark.parametrize(
    ("kind", "say", "code", "retryable"),
    [
        ("openai", Say(status=429, code="rate_limit_exceeded"), "AI_THROTTLED", True),
        ("openai", Say(status=429, code="insufficient_quota"), "AI_QUOTA_EXCEEDED", False),
        ("openai", Say(status=401, code="invalid_api_key"), "AI_AUTH_FAILED", False),
        ("openai", Say(status=403), "AI_AUTH_FAILED", False),
        ("openai", Say(status=404, code="model_not_found"), "AI_MODEL_UNKNOWN", False),
        ("openai", Say(status=400, code="context_length_exceeded"), "AI_CONTEXT_TOO_LONG", False),
        ("openai", Say(status=400, code="content_filter"), "AI_CONTENT_FILTERED", False),
        ("openai", Say(status=422), "AI_REQUEST_REFUSED", False),
        ("openai", Say(status=500), "AI_UNAVAILABLE", True),
        ("openai", Say(status=503), "AI_UNAVAILABLE", True),
        ("openai", Say(raw=b"<html>"), "AI_ANSWER_INVALID", True),
        ("openai", Say(raw=b'{"choices": []}'), "AI_ANSWER_INVALID", True),
        ("bedrock", Say(status=429, code="ThrottlingException"), "AI_THROTTLED", True),
        ("bedrock", Say(status=403, code="AccessDeniedException"), "AI_AUTH_FAILED", False),
        ("bedrock", Say(status=403, code="UnrecognizedClientException"), "AI_AUTH_FAILED", False),
        ("bedrock", Say(status=404, code="ResourceNotFoundException"), "AI_MODEL_UNKNOWN", False),
        ("bedrock", Say(status=400, code="ValidationException"), "AI_REQUEST_REFUSED", False),
        (
            "bedrock",
            Say(status=400, code="ValidationException", message="Input is too long for requested model."),
            "AI_CONTEXT_TOO_LONG",
            False,
        ),
        ("bedrock", Say(status=408, code="ModelTimeoutException"), "AI_TIMEOUT", True),
        ("bedrock", Say(status=503, code="ServiceUnavailableException"), "AI_UNAVAILABLE", True),
        ("bedrock", Say(status=500, code="SomethingNew"), "AI_UNAVAILABLE", True),
        ("bedrock", Say("x", stop="malformed_model_output"), "AI_ANSWER_INVALID", True),
        ("bedrock", Say("x", stop="model_context_window_exceeded"), "AI_CONTEXT_TOO_LONG", False),
    ],
)
def test_failures_have_common_codes(kind: Format, say: Say, code: str, retryable: bool) -> None:
    fault = failure(kind, say)
    assert (fault.code, fault.retryable) == (code, retryable)


@both
def test_a_call_is_sent_once_whatever_comes_back(kind: Format) -> None:
    with (
        Speaker([Say(status=503, code="ServiceUnavailableException")]) as speaker,
        reached(kind, speaker) as (models, ctx),
    ):
        with pytest.raises(ActionError):
            models.ask(asked(), ctx)
        assert len(speaker.heard) == 1


@both
def test_a_model_that_does_not_answer_in_time_is_a_timeout(kind: Format) -> None:
    gate = threading.Event()
    try:
        fault = failure(kind, Say("late", gate=gate), timeout_ms=200)
    finally:
        gate.set()
    assert (fault.code, fault.retryable) == ("AI_TIMEOUT", True)


@both
def test_a_server_that_is_not_there_is_unavailable(kind: Format) -> None:
    speaker = Speaker([Say("x")])
    speaker.server_close()
    with reached(kind, speaker) as (models, ctx), pytest.raises(ActionError) as caught:
        models.ask(asked(), ctx)
    assert (caught.value.code, caught.value.retryable) == ("AI_UNAVAILABLE", True)


@both
def test_a_cancelled_attempt_does_not_wait_for_the_model(kind: Format) -> None:
    gate = threading.Event()
    with Speaker([Say("late", gate=gate)]) as speaker, reached(kind, speaker) as (models, ctx):

        def cancel() -> None:
            speaker.asked.acquire()
            ctx.stop.set()

        threading.Thread(target=cancel, daemon=True).start()
        with pytest.raises(AttemptCancelledError):
            models.ask(asked(timeout_ms=30_000), ctx)
        gate.set()


@both
def test_no_text_of_a_failure_holds_the_key(kind: Format) -> None:
    fault = failure(kind, Say(status=401, code="UnrecognizedClientException", message=f"bad key {KEY}"))
    shown: Any = [fault.code, fault.message, fault.details]
    assert kind == "bedrock" or KEY not in str(shown)


def test_arguments_that_are_no_object_are_told_to_the_model() -> None:
    script = [Say(calls=[("look_up", "{not json"), ("look_up", "[1]"), ("look_up", "")])]
    with Speaker(script) as speaker, reached("openai", speaker) as (models, ctx):
        calls = models.ask(asked(tools=(TOOL,)), ctx).calls
    assert [bool(call.fault) for call in calls] == [True, True, False]
    assert calls[2] == ToolCall("c2", "look_up", {})


def test_a_beat_is_given_while_the_model_thinks() -> None:
    gate, beats = threading.Event(), threading.Semaphore(0)

    def beat(details: Any) -> bool:
        del details
        beats.release()
        gate.set()
        return True

    with Speaker([Say("x", gate=gate)]) as speaker, reached("bedrock", speaker) as (models, _):
        assert models.ask(asked(), ActionContext(on_heartbeat=beat)).text == "x"
    assert beats.acquire(blocking=False)
