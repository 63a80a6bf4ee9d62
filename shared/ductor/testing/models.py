"""A language model of a simulated world, and the tool that it calls. What it says follows from what it was told.

A prompt `turns=2 calls=1 fail=1 say={"n": 1}` gets so many turns of so many tool calls each, then that answer; the
first so many attempts fail. Every execution of the tool is looked at: one that stands in the record already is a fault.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from ductor.actions.action import Action
from ductor.actions.ai.model import AiCode, ModelAnswer, ModelRequest, Stop, ToolCall, ai_error
from ductor.actions.context import ActionContext
from ductor.actions.registry import ActionRegistry
from ductor.app.ai_journal import Journal, Turn
from ductor.app.ai_moves import turns_of
from ductor.app.ai_steps import AiSteps
from ductor.app.connected_run import Resolver
from ductor.app.payloads import PayloadStore
from ductor.model.definition import Retry, Step
from ductor.model.enums import StepType
from ductor.model.json import JSON
from ductor.ports import Clock
from ductor.testing.ledger import Ledger
from ductor.testing.memory import MemoryTable

TOOL: Final = "double.tool"
KINDS: Final = ("", "double")
"""Types of connections behind which the model is: none, and the one that every reference leads to."""

_WORD: Final = re.compile(r"(turns|calls|fail)=(\d+)")
_SAY: Final = re.compile(r"say=(.*)", re.DOTALL)
_KEY: Final = re.compile(r".*/c(\d+)/t(\d+)\.(\d+)")


class Talker:
    """`ModelProvider`. Each answer costs 10 tokens in and 5 out."""

    name = "talker"

    def ask(self, request: ModelRequest, ctx: ActionContext) -> ModelAnswer:
        """The next answer of the prompt's plan."""
        prompt = request.messages[0].text
        plan = {name: int(count) for name, count in _WORD.findall(prompt)}
        if ctx.attempt <= plan.get("fail", 0):
            raise ai_error(AiCode.THROTTLED, "slow down")
        turn = sum(message.assistant for message in request.messages)
        if request.tools and turn < plan.get("turns", 0):
            wanted = range(plan.get("calls", 1))
            calls = tuple(ToolCall(f"t{turn}.{place}", request.tools[0].name, {"v": turn}) for place in wanted)
            return ModelAnswer(calls=calls, stop=Stop.TOOL_USE, input_tokens=10, output_tokens=5)
        said = _SAY.search(prompt)
        return ModelAnswer(text=said[1] if said else "done", input_tokens=10, output_tokens=5)


class Talks:
    """The models and tools of one world. The ledger learns of tool calls, and of those that ran after their end."""

    def __init__(self, ledger: Ledger, table: MemoryTable, payloads: PayloadStore) -> None:
        self._ledger = ledger
        self._journal = Journal(table, payloads)

    def registry(self) -> ActionRegistry:
        return ActionRegistry([Action(name=TOOL, function=self._tool)])

    def step_actions(self, journal: Journal, connections: Resolver, clock: Clock) -> Mapping[str, Action]:
        """What a worker runs for AI steps. `journal` is on the faulty stores, as a worker sees them."""
        steps = AiSteps(
            providers={kind: Talker() for kind in KINDS},
            registry=self.registry(),
            connections=connections,
            journal=journal,
            clock=clock,
        )
        return steps.actions()

    def _tool(self, args: dict[str, JSON], ctx: ActionContext) -> dict[str, JSON]:
        number = self._ledger.tick()
        self._ledger.tool_calls.append((ctx.run_id, ctx.node, ctx.idempotency_key))
        if self._ended(ctx):
            self._ledger.repeated.append((ctx.run_id, f"the tool call {ctx.idempotency_key} ran after its end"))
        return {"v": args.get("v"), "number": number}

    def _ended(self, ctx: ActionContext) -> bool:
        """Whether the result of this very call is recorded."""
        key = _KEY.fullmatch(ctx.idempotency_key)
        if key is None:
            return True
        number, turn, place = (int(part) for part in key.groups())
        turns = turns_of(self._journal.entries(ctx.run_id, ctx.node, number))
        return turn < len(turns) and place < len(turns[turn][1])


def talk_faults(ledger: Ledger, journal: Journal, run_id: str, nodes: Iterable[str]) -> Iterator[str]:
    """What cannot be about the conversations of a run, as sentences."""
    yield from (fault for run, fault in ledger.repeated if run == run_id)
    for node in nodes:
        entries = journal.all_of(run_id, node)
        if entries and not isinstance(entries[0], Turn):
            yield f"the record of {node} begins without the model"
            continue
        for turn, results in turns_of(entries):
            if len(results) > len(turn.answer.calls):
                yield f"{node} has {len(results)} results of {len(turn.answer.calls)} tool calls"


def ai_step(rng: random.Random, kind: StepType, common: dict[str, Any]) -> Step:
    """A step that asks the model; most of them get what they want."""
    plan = f"turns={rng.choice((0, 1, 2, 4))} calls={rng.choice((1, 1, 3))} fail={rng.choice((0, 0, 0, 1, 2))}"
    said = rng.choice(("done", "done", '{"n": 1}', '{"n": "x"}'))
    args: dict[str, Any] = {
        "model": "m",
        "prompt": f"{plan} ${{{{ TRIGGER.payload.n }}}} say={said}",
        "max_tokens": 100,
    }
    if said != "done":
        args["output_schema"] = {"type": "object", "properties": {"n": {"type": "integer"}}}
    if kind is StepType.AI_AGENT:
        args |= {"tools": [TOOL], "max_turns": rng.choice((3, 8)), "budget": {"tokens": rng.choice((40, 1_000))}}
    retry = Retry(max_attempts=rng.choice((1, 2, 4)), backoff_ms=rng.choice((0, 1_000)), jitter=0.1)
    return Step(type=kind, args=args, retry=retry, connection_ref=rng.choice(("", "models")), **_without_type(common))


def _without_type(common: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in common.items() if name != "type"}
