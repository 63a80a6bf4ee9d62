"""The OpenAI-compatible provider: what goes over the wire, to whom, and to whom not."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from tests.unit.ai.asking import KEY, OPEN, asked, connection, open_ai
from tests.unit.ai.speaker import Say, Speaker

from ductor.actions.connection import Connection, Secret
from ductor.actions.context import ActionContext
from ductor.actions.errors import ActionError
from ductor.actions.http import HttpSettings

SCHEMA = {"type": "object"}


def sent(settings: dict[str, Any] | None = None, **request: Any) -> dict[str, Any]:
    """The body of the one request."""
    with Speaker([Say("hi")]) as speaker:
        open_ai().ask(asked(**request), ActionContext(connection=connection(speaker.url, **(settings or {}))))
        return speaker.heard[0].body


def test_the_request_is_a_chat_completion_signed_with_the_key() -> None:
    with Speaker([Say("hi")]) as speaker:
        ctx = ActionContext(idempotency_key="r/n/t0", connection=connection(speaker.url, organization="org-1"))
        open_ai().ask(asked(system="be polite"), ctx)
        heard = speaker.heard[0]
    assert heard.path == "/v1/chat/completions"
    assert heard.headers["authorization"] == f"Bearer {KEY}"
    assert heard.headers["openai-organization"] == "org-1"
    assert heard.headers["idempotency-key"] == "r/n/t0"
    assert heard.body == {
        "model": "some.model-1",
        "messages": [{"role": "system", "content": "be polite"}, {"role": "user", "content": "hello"}],
        "max_tokens": 50,
    }


def test_a_text_that_looks_like_a_reference_stays_a_text() -> None:
    body = sent(text="{args.body} {settings.base_url}")
    assert body["messages"][0]["content"] == "{args.body} {settings.base_url}"


def test_the_limit_goes_by_the_name_that_the_connection_says() -> None:
    assert "max_completion_tokens" in sent({"max_tokens_field": "max_completion_tokens"})


@pytest.mark.parametrize(("mode", "kind"), [("json_schema", "json_schema"), ("json_object", "json_object")])
def test_a_schema_is_asked_for_in_the_way_that_the_server_knows(mode: str, kind: str) -> None:
    assert sent({"structured_output": mode}, schema=SCHEMA)["response_format"]["type"] == kind
    assert "response_format" not in sent({"structured_output": "prompt"}, schema=SCHEMA)


def test_a_refusal_is_a_withheld_answer() -> None:
    with Speaker([Say("", refusal="I cannot")]) as speaker:
        answer = open_ai().ask(asked(), ActionContext(connection=connection(speaker.url)))
    assert answer.stop.value == "content_filtered"


@pytest.mark.parametrize(
    ("settings", "code"),
    [(HttpSettings(), "CONNECTION_INSECURE"), (HttpSettings(allowed_hosts=("else.test",)), "CONNECTION_INSECURE")],
)
def test_a_key_is_not_sent_to_private_addresses_unless_configured(settings: HttpSettings, code: str) -> None:
    with Speaker([Say("hi")]) as speaker, pytest.raises(ActionError) as caught:
        open_ai(settings).ask(asked(), ActionContext(connection=connection(speaker.url)))
    assert (caught.value.code, speaker.heard) == (code, [])


def test_a_private_address_behind_https_is_refused_by_the_rules_of_http_requests() -> None:
    with pytest.raises(ActionError) as caught:
        open_ai(HttpSettings()).ask(asked(), ActionContext(connection=connection("https://127.0.0.1:1")))
    assert (caught.value.code, caught.value.retryable) == ("HTTP_ADDRESS_FORBIDDEN", False)


def test_an_answer_over_the_size_limit_is_refused() -> None:
    small = msgspec.structs.replace(OPEN, max_body_bytes=500)
    with Speaker([Say("x" * 1_000)]) as speaker, pytest.raises(ActionError) as caught:
        open_ai(small).ask(asked(), ActionContext(connection=connection(speaker.url)))
    assert caught.value.code == "HTTP_BODY_TOO_LARGE"


def test_a_connection_of_another_type_is_refused() -> None:
    other = Connection(id="c", slug="s", type="slack", secrets={"bot_token": Secret("xoxb-123456")})
    with pytest.raises(ActionError, match="of type slack"):
        open_ai().ask(asked(), ActionContext(connection=other))
