"""Bedrock through the vendor's library against a server of ours: the Converse format, and what is missing is named."""

from __future__ import annotations

import pytest
from tests.unit.ai.asking import asked, aws, reached
from tests.unit.ai.speaker import Say, Speaker

from ductor.actions.ai.bedrock import BedrockModels
from ductor.actions.ai.model import Message, ModelRequest, ToolCall, ToolResult, ToolSpec
from ductor.actions.context import ActionContext
from ductor.actions.errors import ActionError

TOOL = ToolSpec("look_up", "", {"type": "object"})


def test_the_request_is_a_converse_call() -> None:
    with Speaker([Say("hi")]) as speaker, reached("bedrock", speaker) as (models, ctx):
        models.ask(asked(system="be polite", temperature=0.5, tools=(TOOL,)), ctx)
        heard = speaker.heard[0]
    assert heard.path == "/model/some.model-1/converse"
    assert heard.body == {
        "messages": [{"role": "user", "content": [{"text": "hello"}]}],
        "system": [{"text": "be polite"}],
        "inferenceConfig": {"maxTokens": 50, "temperature": 0.5},
        "toolConfig": {"tools": [{"toolSpec": {"name": "look_up", "inputSchema": {"json": {"type": "object"}}}}]},
    }


def test_what_one_side_says_in_a_row_is_one_message_and_blanks_are_left_out() -> None:
    messages = (
        Message(False, "a"),
        Message(False, "b"),
        Message(True, " ", calls=(ToolCall("1", "look_up", {"q": 1}),)),
        Message(False, results=(ToolResult("1", "gone", failed=True),)),
        Message(False, "go on"),
    )
    with Speaker([Say("hi")]) as speaker, reached("bedrock", speaker) as (models, ctx):
        models.ask(ModelRequest(model="m", messages=messages, max_tokens=5, tools=(TOOL,)), ctx)
        sent = speaker.heard[0].body["messages"]
    assert sent == [
        {"role": "user", "content": [{"text": "a"}, {"text": "b"}]},
        {"role": "assistant", "content": [{"toolUse": {"toolUseId": "1", "name": "look_up", "input": {"q": 1}}}]},
        {
            "role": "user",
            "content": [
                {"toolResult": {"toolUseId": "1", "content": [{"text": "gone"}], "status": "error"}},
                {"text": "go on"},
            ],
        },
    ]


def test_a_missing_permission_is_named() -> None:
    with (
        Speaker([Say(status=403, code="AccessDeniedException", message="not authorized")]) as speaker,
        reached("bedrock", speaker) as (models, ctx),
        pytest.raises(ActionError, match="bedrock:InvokeModel"),
    ):
        models.ask(asked(), ctx)


def test_a_missing_region_is_named() -> None:
    with Speaker([Say("hi")]) as speaker, aws(speaker.url), pytest.raises(ActionError, match="region") as caught:
        BedrockModels().ask(asked(), ActionContext())
    assert (caught.value.code, caught.value.retryable, speaker.heard) == ("AI_AUTH_FAILED", False, [])


def test_missing_credentials_are_named() -> None:
    with (
        Speaker([Say("hi")]) as speaker,
        aws(speaker.url, AWS_ACCESS_KEY_ID="", AWS_SECRET_ACCESS_KEY=""),
        pytest.raises(ActionError) as caught,
    ):
        BedrockModels("us-east-1").ask(asked(), ActionContext())
    assert caught.value.code == "AI_AUTH_FAILED"
    assert speaker.heard == []


def test_switched_off_it_says_so_and_calls_nobody() -> None:
    with Speaker([Say("hi")]) as speaker, aws(speaker.url), pytest.raises(ActionError, match="switched off") as caught:
        BedrockModels("us-east-1", enabled=False).ask(asked(), ActionContext())
    assert (caught.value.code, caught.value.retryable, speaker.heard) == ("AI_PROVIDER_OFF", False, [])


def test_a_request_that_the_library_refuses_is_no_server_fault() -> None:
    with (
        Speaker([Say("hi")]) as speaker,
        reached("bedrock", speaker) as (models, ctx),
        pytest.raises(ActionError) as caught,
    ):
        models.ask(ModelRequest(model="", messages=(Message(False, "x"),), max_tokens=5), ctx)
    assert (caught.value.code, caught.value.retryable) == ("AI_REQUEST_REFUSED", False)
