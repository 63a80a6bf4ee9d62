"""What comes next in a conversation, for any answers: it always ends, and never runs a tool call twice."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from tests.unit.ai.room import says

from ductor.actions.ai.model import Message, ModelAnswer, Stop, ToolResult
from ductor.app.ai_journal import Called, Entry, Turn
from ductor.app.ai_moves import AskModel, Rules, RunTool, next_move

answers = st.builds(
    lambda text, calls, stop, tokens: says(text, *calls, stop=stop, input_tokens=tokens),
    st.sampled_from(["", "x", "{}", '{"n": 1}']),
    st.lists(st.just(("t", {})), max_size=3),
    st.sampled_from(list(Stop)),
    st.integers(0, 50),
)
rules = st.builds(
    lambda turns, tokens, schema, tools, whole: Rules(
        opening=(Message(False, "hello"),), max_turns=turns, tokens=tokens, schema=schema, tools=tools, whole=whole
    ),
    st.integers(1, 6),
    st.sampled_from([0, 30, 200]),
    st.sampled_from([None, {"type": "object", "required": ["n"]}]),
    st.booleans(),
    st.booleans(),
)


@given(rules, st.lists(answers, min_size=8, max_size=8))
def test_every_conversation_ends_within_its_limits(limits: Rules, script: list[ModelAnswer]) -> None:
    entries: list[Entry] = []
    asked, ran = 0, []
    while True:
        move = next_move(limits, entries)
        assert move == next_move(limits, list(entries))
        if isinstance(move, AskModel):
            assert asked < limits.max_turns
            assert not move.messages[-1].assistant
            turn = Turn(answer=script[asked], provider="p", model="m", took_ms=0, at=0, attempt=1)
            entries.append(turn)
            asked += 1
        elif isinstance(move, RunTool):
            ran.append((move.turn, move.place))
            result = ToolResult(move.call.id, "{}")
            entries.append(Called(tool="t", result=result, took_ms=0, at=0, attempt=1))
        else:
            break
    assert len(set(ran)) == len(ran)
