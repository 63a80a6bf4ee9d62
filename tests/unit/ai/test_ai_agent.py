"""`ai_agent`: turns and tool calls, each recorded before the next; limits end it by name; nothing runs twice."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from pydantic import BaseModel
from tests.unit.ai.room import Room, says

from ductor.actions.ai.model import AiCode, Stop, ai_error
from ductor.actions.connection import Connection, Secret
from ductor.actions.errors import ActionError, AttemptCancelledError
from ductor.app.ai_journal import Called
from ductor.app.ai_tools import MAX_RESULT_BYTES
from ductor.model.attempt import AttemptTask
from ductor.ports import UnavailableError


class Query(BaseModel):
    q: str


def desk(*answers: Any, **rest: Any) -> Room:
    """A room with the tools `shop.find` (a model of args) and `shop.order` (any args)."""
    room = Room(*answers, **rest)
    room.tool("shop.find", lambda args, ctx: {"found": args.q}, args_model=Query, description="Finds.")
    room.tool("shop.order", lambda args, ctx: {"ordered": args})
    return room


TOOLS = ["shop.find", "shop.order"]


def refused(room: Room, attempt: int = 1, **args: Any) -> ActionError:
    with pytest.raises(ActionError) as caught:
        room.agent(attempt, TOOLS, **args)
    return caught.value


def test_tools_are_called_until_the_model_answers() -> None:
    room = desk(
        says("let me see", ("shop_find", {"q": "tea"})),
        says("", ("shop_order", {"n": 1}), ("shop_order", {"n": 2})),
        says("done"),
    )
    output = room.agent(tools=TOOLS)
    assert (output["text"], output["turns"], output["usage"]["tool_calls"]) == ("done", 3, 3)
    assert output["usage"]["input_tokens"] == 30
    assert room.kinds() == "TCTCCT"
    assert [(name, key) for name, _, key in room.calls] == [
        ("shop.find", "run-1/n/c1/t0.0"),
        ("shop.order", "run-1/n/c1/t1.0"),
        ("shop.order", "run-1/n/c1/t1.1"),
    ]
    assert [result.text for result in room.model.requests[-1].messages[-1].results] == [
        '{"ordered":{"n":1}}',
        '{"ordered":{"n":2}}',
    ]


def test_the_model_is_told_what_each_tool_takes() -> None:
    room = desk(says("done"))
    room.agent(tools=["shop.find", {"action": "shop.order", "description": "Orders anything."}])
    first, second = room.model.requests[0].tools
    assert (first.name, first.description, first.schema["required"]) == ("shop_find", "Finds.", ["q"])
    assert (second.name, second.description, second.schema) == ("shop_order", "Orders anything.", {"type": "object"})


def test_names_that_models_cannot_tell_apart_get_numbers() -> None:
    room = Room(says("", ("a_b_2", {}), ("a_b", {})), says("done"))
    room.tool("a.b", lambda args, ctx: {})
    room.tool("a_b", lambda args, ctx: {})
    room.agent(tools=["a.b", "a_b"])
    assert [name for name, _, _ in room.calls] == ["a_b", "a.b"]


@pytest.mark.parametrize(
    ("call", "code"),
    [
        (("shop_find", {"wrong": 1}), "ACTION_ARGS_INVALID"),
        (("shop_steal", {}), "TOOL_UNKNOWN"),
        (("broken", {}), "ACTION_FAILED"),
        (("closed", {}), "SHOP_CLOSED"),
    ],
)
def test_what_goes_wrong_with_a_tool_is_told_to_the_model(call: tuple[str, dict[str, Any]], code: str) -> None:
    room = desk(says("", call), says("sorry"))
    room.tool("broken", lambda args, ctx: 1 / 0)

    def closed(args: Any, ctx: Any) -> Any:
        raise ActionError("SHOP_CLOSED", "we are closed")

    room.tool("closed", closed)
    assert room.agent(tools=[*TOOLS, "broken", "closed"])["text"] == "sorry"
    result = room.model.requests[1].messages[-1].results[0]
    assert (result.failed, code in result.text) == (True, True)
    assert [entry.code for entry in room.recorded() if isinstance(entry, Called)] == [code]


def test_an_action_that_is_no_tool_of_the_step_cannot_be_called() -> None:
    room = desk(says("", ("shop_order", {"n": 1})), says("ok"))
    room.agent(tools=["shop.find"])
    assert room.calls == []


def test_a_long_result_is_cut_and_the_model_is_told() -> None:
    room = desk(says("", ("long", {})), says("ok"))
    room.tool("long", lambda args, ctx: {"x": "ä" * MAX_RESULT_BYTES})
    room.agent(tools=["long"])
    text = room.model.requests[1].messages[-1].results[0].text
    assert len(text.encode()) < MAX_RESULT_BYTES + 100
    assert "cut" in text


def test_the_turn_limit_ends_it_before_the_last_tools_run() -> None:
    room = desk(says("", ("shop_order", {"n": 1})), says("", ("shop_order", {"n": 2})))
    fault = refused(room, max_turns=2)
    assert (fault.code, fault.retryable, fault.details["calls"]) == ("AI_TURNS_EXCEEDED", False, 2)
    assert [args for _, args, _ in room.calls] == [{"n": 1}]


def test_the_budget_ends_it_before_the_next_tools_run() -> None:
    room = desk(says("", ("shop_order", {"n": 1})), says("", ("shop_order", {"n": 2})))
    fault = refused(room, budget={"tokens": 20})
    assert (fault.code, fault.retryable, fault.details["input_tokens"]) == ("AI_BUDGET_EXCEEDED", False, 20)
    assert len(room.calls) == 1


def test_an_answer_counts_although_it_used_up_the_budget() -> None:
    assert desk(says("done")).agent(budget={"tokens": 1})["text"] == "done"


def test_a_call_that_was_cut_off_is_not_run() -> None:
    room = desk(says("", ("shop_order", {"n": 1}), stop=Stop.MAX_TOKENS))
    assert refused(room).code == "AI_OUTPUT_TRUNCATED"
    assert room.calls == []


def test_too_many_calls_at_once_are_refused() -> None:
    room = desk(says("", *[("shop_order", {"n": n}) for n in range(65)]))
    assert refused(room).code == "AI_TOOL_CALLS_EXCEEDED"
    assert room.calls == []


def test_an_answer_that_does_not_fit_is_repaired_once_and_then_final() -> None:
    schema = {"type": "object", "required": ["n"]}
    room = desk(says("", ("shop_order", {})), says("{}"), says('{"n": 1}'))
    assert room.agent(tools=TOOLS, output_schema=schema)["object"] == {"n": 1}
    room = desk(says("", ("shop_order", {})), says("{}"), says("{}"))
    fault = refused(room, output_schema=schema)
    assert (fault.code, fault.retryable) == ("AI_OUTPUT_INVALID", False)


def test_a_retry_goes_on_where_the_conversation_stood() -> None:
    room = desk(says("", ("shop_order", {"n": 1})), ai_error(AiCode.UNAVAILABLE, "down"), says("done"))
    assert refused(room).code == "AI_UNAVAILABLE"
    output = room.agent(2, TOOLS)
    assert (output["text"], output["turns"], len(room.calls)) == ("done", 2, 1)


def test_after_a_limit_a_redrive_begins_anew_with_new_keys() -> None:
    room = desk(says("", ("shop_order", {"n": 1})), says("", ("shop_order", {"n": 2})))
    refused(room, max_turns=2)
    room.model.answers = [says("", ("shop_order", {"n": 3})), says("done")]
    assert room.agent(2, TOOLS, max_turns=2)["text"] == "done"
    assert [key for _, _, key in room.calls] == ["run-1/n/c1/t0.0", "run-1/n/c2/t0.0"]


def test_an_agent_stops_between_turns_when_it_is_cancelled() -> None:
    room = desk(says("", ("shop_order", {"n": 1})), says("never"))
    stop = threading.Event()

    def stopper(args: Any, ctx: Any) -> Any:
        stop.set()
        return {}

    room.tool("stopper", stopper)
    room.model.answers = [says("", ("stopper", {}), ("shop_order", {"n": 1})), says("never")]
    args = {"model": "m", "prompt": "x", "max_tokens": 5, "max_turns": 5, "tools": ["stopper", "shop.order"]}
    with pytest.raises(AttemptCancelledError):
        room.steps().agent(args, room.context(stop=stop))
    assert ([name for name, _, _ in room.calls], room.kinds()) == (["stopper"], "TC")


def test_a_tool_that_stops_for_a_cancellation_has_not_ended() -> None:
    room = desk(says("", ("stopper", {})))

    def stopper(args: Any, ctx: Any) -> Any:
        raise AttemptCancelledError("stopped")

    room.tool("stopper", stopper)
    with pytest.raises(AttemptCancelledError):
        room.agent(tools=["stopper"])
    assert room.kinds() == "T"


def test_storage_that_is_away_ends_nothing() -> None:
    class Away:
        def resolve(self, task: AttemptTask) -> Connection | None:
            raise UnavailableError("away")

    room = desk(says("", ("shop_order", {})), connections=Away())
    with pytest.raises(UnavailableError):
        room.agent(tools=TOOLS)
    assert room.kinds() == "T"


class Vault:
    """Resolves what it is asked for, and notes it."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str, str]] = []

    def resolve(self, task: AttemptTask) -> Connection | None:
        self.asked.append((task.connection_ref, task.connection_ref_mode, task.environment))
        if not task.connection_ref:
            return None
        secret = Secret(f"secret-{task.connection_ref}")
        return Connection(id="c", slug=task.connection_ref, type="shop", secrets={"token": secret})


def test_each_tool_gets_the_connection_that_the_step_says() -> None:
    vault = Vault()
    room = Room(says("", ("one", {}), ("two", {}), ("three", {})), says("done"), connections=vault)
    for name in ("one", "three"):
        room.tool(name, lambda args, ctx: {"by": ctx.connection.slug if ctx.connection else None})
    room.tool("two", lambda args, ctx: {"by": str(ctx.connection)}, connection_type="shop")
    named = {"action": "one", "connection_ref": "crm", "connection_ref_mode": "environment"}
    room.agent(tools=[named, "two", "three"])
    assert vault.asked == [("crm", "environment", "prod"), ("shop", "", "prod"), ("", "", "prod")]


def test_a_secret_of_a_tool_reaches_neither_the_model_nor_the_records() -> None:
    room = Room(says("", ("leak", {})), says("done"), connections=Vault())

    def leak(args: Any, ctx: Any) -> Any:
        return {"sent": ctx.connection.secret("token").reveal()}

    room.tool("leak", leak, connection_type="shop")
    room.agent(tools=["leak"])
    assert room.model.requests[1].messages[-1].results[0].text == '{"sent":"***"}'
    assert not [row for row in room.table.rows() if b"secret-shop" in row.body]


def test_an_unknown_tool_fails_the_step() -> None:
    fault = refused(Room(says("x")))
    assert (fault.code, fault.retryable) == ("ACTION_UNKNOWN", False)
