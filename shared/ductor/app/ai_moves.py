"""What a conversation comes to next: a pure function of what is recorded of it, so any worker can go on with it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from ductor.actions.ai.model import Message, Stop, ToolCall
from ductor.app.ai_journal import Called, Entry, Turn
from ductor.app.ai_output import check, repair_request
from ductor.model.json import JSON

MAX_CALLS_PER_TURN: Final = 64
"""Tool calls that a model may ask for in one answer."""

_SILENT: Final = "(no answer)"


class Rules(msgspec.Struct, frozen=True, kw_only=True):
    """`opening` are the step's own messages. `tokens` 0 = no budget. `whole`: an answer that was cut off is none."""

    opening: tuple[Message, ...]
    max_turns: int
    tokens: int = 0
    schema: dict[str, JSON] | None = None
    tools: bool = False
    whole: bool = False


class AskModel(msgspec.Struct, frozen=True):
    """The model's turn."""

    messages: tuple[Message, ...]


class RunTool(msgspec.Struct, frozen=True):
    """A tool call of the latest turn; `place` counts the turn's calls, `turn` the turns, both from 0."""

    turn: int
    place: int
    call: ToolCall


class Finish(msgspec.Struct, frozen=True):
    """The answer: `value` when a schema was asked for, `text` otherwise."""

    text: str
    value: JSON
    stop: Stop


class GiveUp(msgspec.Struct, frozen=True):
    """The conversation came to nothing."""

    code: str
    message: str
    retryable: bool = False


Move = AskModel | RunTool | Finish | GiveUp


def next_move(rules: Rules, entries: Sequence[Entry]) -> Move:
    """What to do now. Ends for every sequence of answers: at the latest with the limits."""
    turns = turns_of(entries)
    if not turns:
        return AskModel(rules.opening)
    answer = turns[-1][0].answer
    if answer.stop is Stop.CONTENT_FILTERED:
        return GiveUp("AI_CONTENT_FILTERED", "the provider withheld the answer for its content")
    if answer.stop is Stop.MAX_TOKENS and (rules.whole or rules.schema is not None):
        return GiveUp("AI_OUTPUT_TRUNCATED", "the answer was cut off at max_tokens; raise it, or ask for less")
    if answer.calls and rules.tools:
        return _after_calls(rules, turns)
    return _after_answer(rules, turns)


def _after_calls(rules: Rules, turns: list[tuple[Turn, list[Called]]]) -> Move:
    turn, results = turns[-1]
    calls = turn.answer.calls
    if len(calls) > MAX_CALLS_PER_TURN:
        return GiveUp("AI_TOOL_CALLS_EXCEEDED", f"the model asked for {len(calls)} tool calls at once")
    # Before the calls, not after them: their results would lead nowhere.
    if limit := _limit(rules, turns):
        return limit
    if len(results) < len(calls):
        return RunTool(len(turns) - 1, len(results), calls[len(results)])
    return AskModel(_messages(rules, turns))


def _after_answer(rules: Rules, turns: list[tuple[Turn, list[Called]]]) -> Move:
    answer = turns[-1][0].answer
    if rules.schema is None:
        return Finish(answer.text, None, answer.stop)
    checked = check(answer.text, rules.schema)
    if not checked.faults:
        return Finish("", checked.value, answer.stop)
    answers = sum(not (turn.answer.calls and rules.tools) for turn, _ in turns)
    if answers == 1 and _limit(rules, turns) is None:
        return AskModel(_messages(rules, turns))
    told = "; ".join(fault.rule for fault in checked.faults)
    # A tool may have had effects: beginning anew is for people to decide.
    return GiveUp("AI_OUTPUT_INVALID", f"the answer does not fit output_schema: {told}", retryable=not rules.tools)


def _limit(rules: Rules, turns: list[tuple[Turn, list[Called]]]) -> GiveUp | None:
    used = sum(turn.answer.input_tokens + turn.answer.output_tokens for turn, _ in turns)
    if len(turns) >= rules.max_turns:
        return GiveUp("AI_TURNS_EXCEEDED", f"no answer after {len(turns)} turns, which is max_turns")
    if rules.tokens and used >= rules.tokens:
        message = f"no answer after {used} tokens in {len(turns)} turns; the budget is {rules.tokens}"
        return GiveUp("AI_BUDGET_EXCEEDED", message)
    return None


def turns_of(entries: Sequence[Entry]) -> list[tuple[Turn, list[Called]]]:
    """Each turn with the tool calls that have ended since."""
    turns: list[tuple[Turn, list[Called]]] = []
    for entry in entries:
        if isinstance(entry, Turn):
            turns.append((entry, []))
        elif isinstance(entry, Called):
            turns[-1][1].append(entry)
    return turns


def _messages(rules: Rules, turns: list[tuple[Turn, list[Called]]]) -> tuple[Message, ...]:
    return (*rules.opening, *(message for turn, results in turns for message in _spoken(rules, turn, results)))


def _spoken(rules: Rules, turn: Turn, results: list[Called]) -> Iterator[Message]:
    answer = turn.answer
    if answer.calls and rules.tools:
        yield Message(True, answer.text, calls=answer.calls)
        yield Message(False, results=tuple(one.result for one in results))
        return
    yield Message(True, answer.text.strip() or _SILENT)
    if rules.schema is not None:
        yield Message(False, repair_request(check(answer.text, rules.schema).faults))
