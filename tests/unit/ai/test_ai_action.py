"""`ai_action`: one answer, one repair of an answer that does not fit, then a clear end; everything counted."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.ai.room import Room, says

from ductor.actions.ai.model import AiCode, Stop, ai_error
from ductor.actions.connection import Connection, Secret
from ductor.actions.errors import ActionError
from ductor.model.attempt import ModelUse

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"total": {"type": "integer"}},
    "required": ["total"],
    "additionalProperties": False,
}


def refused(room: Room, attempt: int = 1, **args: Any) -> ActionError:
    with pytest.raises(ActionError) as caught:
        room.call(attempt, **args)
    return caught.value


def test_a_text_with_what_it_cost() -> None:
    room = Room(says("good day"))
    assert room.call(system="be polite", temperature=0.3) == {
        "text": "good day",
        "stop_reason": "end_turn",
        "usage": {
            "provider": "scripted",
            "model": "m",
            "calls": 1,
            "tool_calls": 0,
            "input_tokens": 10,
            "output_tokens": 5,
            "latency_ms": 100,
        },
    }
    assert room.used == [ModelUse("scripted", "m", 1, 10, 5, 100)]
    assert (room.model.requests[0].system, room.model.requests[0].temperature) == ("be polite", 0.3)


def test_messages_keep_their_roles() -> None:
    room = Room(says("ok"))
    room.call(prompt=None, messages=[{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}])
    assert [(one.assistant, one.text) for one in room.model.requests[0].messages] == [(False, "a"), (True, "b")]


def test_an_answer_that_was_cut_off_says_so() -> None:
    output = Room(says("half a", stop=Stop.MAX_TOKENS)).call()
    assert (output["text"], output["stop_reason"]) == ("half a", "max_tokens")


@pytest.mark.parametrize("text", ['{"total": 3}', '```json\n{"total": 3}\n```', '\n ```\n{"total": 3}\n``` \n'])
def test_a_structured_answer_is_an_object(text: str) -> None:
    room = Room(says(text))
    output = room.call(output_schema=SCHEMA)
    assert (output["object"], "text" in output) == ({"total": 3}, False)
    assert '"total"' in room.model.requests[0].system


def test_a_list_or_a_number_is_an_answer_where_the_schema_says_so() -> None:
    assert Room(says("[1]")).call(output_schema={"type": "array"})["object"] == [1]


@pytest.mark.parametrize("bad", ["certainly!", '{"total": "3"}', '{"total": 3, "x": 1}', "{}", '{"total": NaN}', ""])
def test_an_answer_that_does_not_fit_is_repaired_once(bad: str) -> None:
    room = Room(says(bad), says('{"total": 3}'))
    output = room.call(output_schema=SCHEMA)
    assert output["object"] == {"total": 3}
    assert (output["usage"]["calls"], output["usage"]["input_tokens"]) == (2, 20)
    second = room.model.requests[1].messages
    assert [one.assistant for one in second] == [False, True, False]
    assert "does not fit" in second[-1].text


def test_a_second_answer_that_does_not_fit_ends_the_attempt_and_shows_no_value() -> None:
    room = Room(says('{"total": "private"}'), says('{"total": "private"}'))
    fault = refused(room, output_schema=SCHEMA)
    assert (fault.code, fault.retryable) == ("AI_OUTPUT_INVALID", True)
    assert "answer.total" in fault.message
    assert "private" not in fault.message
    assert fault.details["calls"] == 2
    assert room.model.answers == []


def test_a_retry_after_that_begins_anew() -> None:
    room = Room(says("x"), says("y"), says('{"total": 1}'))
    refused(room, output_schema=SCHEMA)
    assert room.call(2, output_schema=SCHEMA)["object"] == {"total": 1}
    assert len(room.model.requests[2].messages) == 1
    assert room.kinds() == "TTXT"


def test_a_structured_answer_that_was_cut_off_is_not_repaired() -> None:
    room = Room(says('{"total": ', stop=Stop.MAX_TOKENS))
    fault = refused(room, output_schema=SCHEMA)
    assert (fault.code, fault.retryable, len(room.model.requests)) == ("AI_OUTPUT_TRUNCATED", False, 1)


def test_a_withheld_answer_is_an_error_of_its_own() -> None:
    fault = refused(Room(says("", stop=Stop.CONTENT_FILTERED)))
    assert (fault.code, fault.retryable) == ("AI_CONTENT_FILTERED", False)


def test_an_answer_that_was_recorded_is_not_paid_for_twice() -> None:
    room = Room(says("x"), ai_error(AiCode.THROTTLED, "slow down"), says('{"total": 1}'))
    assert refused(room, output_schema=SCHEMA).code == "AI_THROTTLED"
    output = room.call(2, output_schema=SCHEMA)
    assert (output["object"], output["usage"]["calls"], room.kinds()) == ({"total": 1}, 2, "TT")


def test_another_input_is_another_conversation() -> None:
    room = Room(says("one"), says("two"))
    assert room.call()["text"] == "one"
    assert room.call(2, prompt="else")["text"] == "two"


def test_the_same_input_after_its_end_gives_the_same_answer() -> None:
    room = Room(says("one"))
    assert room.call() == room.call()


def test_each_call_of_a_model_has_a_key_of_its_own() -> None:
    room = Room(says("x"), says("y"))
    refused(room, output_schema=SCHEMA)
    assert room.model.keys == ["run-1/n/c1/t0/1", "run-1/n/c1/t1/1"]


def test_a_call_gets_no_more_time_than_the_attempt_has() -> None:
    room = Room(says("x"))
    args = {"model": "m", "prompt": "hello", "max_tokens": 50}
    room.steps().call(args, room.context(deadline=room.clock.now_ms() + 7_000))
    assert room.model.requests[0].timeout_ms == 7_000


def test_args_that_do_not_fit_are_refused() -> None:
    fault = refused(Room(), max_tokens=0)
    assert (fault.code, fault.retryable) == ("ACTION_ARGS_INVALID", False)


def test_a_connection_that_leads_to_no_model_is_refused() -> None:
    room = Room()
    slack = Connection(id="c", slug="s", type="slack")
    with pytest.raises(ActionError, match="lead to no model") as caught:
        room.steps().call({"model": "m", "prompt": "x", "max_tokens": 5}, room.context(connection=slack))
    assert caught.value.code == "CONNECTION_TYPE_MISMATCH"


def test_a_secret_that_the_model_repeats_is_not_recorded() -> None:
    secret = "sk-0123456789"
    room = Room()
    room.model.answers = [says(f"my key is {secret}")]
    models = Connection(id="c", slug="s", type="openai", secrets={"api_key": Secret(secret)})
    steps = room.steps(("openai", room.model))
    output = steps.call({"model": "m", "prompt": "x", "max_tokens": 5}, room.context(connection=models))
    assert output["text"] == "my key is ***"
    assert not [row for row in room.table.rows() if secret.encode() in row.body]


def test_a_long_answer_is_kept_whole() -> None:
    room = Room(says("x" * 500_000))
    assert len(room.call()["text"]) == 500_000
    assert max(len(row.body) for row in room.table.rows()) < 400_000
    assert len(room.call()["text"]) == 500_000
