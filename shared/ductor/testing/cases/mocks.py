"""Actions under test: each answers as the test file says. What is not mocked is never called, but for the built-in ones

that reach nothing outside.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import msgspec

from ductor.actions.action import Action
from ductor.actions.context import ActionContext
from ductor.actions.errors import ActionError
from ductor.actions.registry import ActionRegistry
from ductor.app.ai_output import check
from ductor.expressions import ExpressionError, compile_template
from ductor.model.enums import StepType
from ductor.model.json import JSON, encode
from ductor.steps.duration import parse_duration
from ductor.testing.cases.document import Given, Reply
from ductor.testing.cases.forms import milliseconds
from ductor.testing.doubles import Doubles
from ductor.testing.ledger import Ledger

MOCKED_CHILD: Final = "test.workflow"
"""The action of the one step of a mocked child workflow."""

REAL: Final = frozenset({"core.echo", "core.fail"})
"""Run as they are when they are not mocked: they reach nothing outside."""

SLEEP: Final = "core.sleep"
AI_STEPS: Final = (StepType.AI_ACTION, StepType.AI_AGENT)


class Said(msgspec.Struct, frozen=True):
    """What a mock answers: an output or an error, after so much time."""

    output: JSON
    error: ActionError | None
    takes_ms: int


class Asked(msgspec.Struct, frozen=True):
    """Who asks a mock: an attempt of a node of a run."""

    run_id: str
    node: str
    attempt: int


class Caller(msgspec.Struct, frozen=True):
    """The run that an attempt belongs to, as mocks see it."""

    family: str
    payload: JSON


class Mocks(Doubles):
    """The mocks of one world.

    `gaps` says, per action that was called without a mock, which step called it. A redelivery of an attempt, after its
    worker died, gets the very answer that the attempt got first.
    """

    def __init__(self, ledger: Ledger, actions: ActionRegistry, given: Given, caller: Callable[[str], Caller]) -> None:
        super().__init__(ledger)
        self.main_family = ""
        self.gaps: dict[str, None] = {}
        self._actions = actions
        self._given = given
        self._caller = caller
        self._turns: dict[str, dict[Asked, int]] = {}

    def registry(self) -> ActionRegistry:
        """Every action of the installation under its name, each with the answers of the test file."""
        known = [self._actions.get(name) for name in self._actions.names()]
        mocked = [self._mocked(action) for action in known if action is not None]
        return ActionRegistry([*mocked, child_action(self._child)], self._actions.connectors)

    def step_actions(self) -> dict[str, Action]:
        """For the steps that ask a model: no test ever does."""
        return {kind.value: self._asking(kind) for kind in AI_STEPS}

    def _asking(self, kind: StepType) -> Action:
        def run(args: dict[str, JSON], ctx: ActionContext) -> Any:
            answer = self._answer(kind.value, args, ctx)
            self._check_shape(answer, args.get("output_schema"), ctx)
            return answer

        return Action(name=kind.value, function=run, blocking=False)

    def _check_shape(self, answer: JSON, schema: JSON, ctx: ActionContext) -> None:
        """A step with an `output_schema` never gives another object, so its mock must not either."""
        if not isinstance(schema, dict):
            return
        found = check(encode(answer.get("object") if isinstance(answer, dict) else None).decode(), schema).faults
        if found:
            told = f"the mock of {ctx.node} gives no `object` that fits the output_schema: {found[0].message}"
            self.gaps.setdefault(told)
            raise ActionError("MOCK_INVALID", told, retryable=False)

    def _mocked(self, action: Action) -> Action:
        def run(args: dict[str, JSON], ctx: ActionContext) -> Any:
            parsed = action.parse(args)
            answer = self._answer(action.name, args, ctx)
            return action.function(parsed, ctx) if answer is None else answer

        return msgspec.structs.replace(action, function=run, args_model=None, blocking=False)

    def _child(self, args: dict[str, JSON], ctx: ActionContext) -> JSON:
        family = self._caller(ctx.run_id).family
        asked = Asked(ctx.run_id, ctx.node, ctx.attempt)
        return self._acted(self._said(f"workflows.{family}", self._given.workflows[family], args["input"], asked))

    def _answer(self, name: str, args: dict[str, JSON], ctx: ActionContext) -> JSON:
        """What a mock returns; None when the action itself is to run."""
        said = self.say(name, args, Asked(ctx.run_id, ctx.node, ctx.attempt))
        if said is not None:
            return self._acted(said)
        if name in REAL:
            return None
        if name == SLEEP:
            return self._sleep(args)
        self.gaps.setdefault(f"step {ctx.node} called {name}, which no mock answers")
        raise ActionError("MOCK_MISSING", f"the test mocks neither step {ctx.node} nor {name}", retryable=False)

    def say(self, name: str, args: JSON, asked: Asked) -> Said | None:
        """What the mock of a step, else of an action (or type of task) answers; None without a mock."""
        found = self._find(name, asked)
        return None if found is None else self._said(*found, args, asked)

    def _acted(self, said: Said) -> JSON:
        self.takes_ms = said.takes_ms
        if said.error is not None:
            raise said.error
        return said.output

    def _find(self, name: str, asked: Asked) -> tuple[str, Sequence[Reply]] | None:
        """The mock of the node, else of its step, else of the action, with a name for it."""
        family, ref = self._caller(asked.run_id).family, asked.node.partition("@")[0]
        keys = [f"{family}/{asked.node}", f"{family}/{ref}"]
        if family == self.main_family:
            keys = [asked.node, ref, *keys]
        for key in keys:
            if key in self._given.steps:
                return f"steps.{key}", self._given.steps[key]
        return (f"actions.{name}", self._given.actions[name]) if name in self._given.actions else None

    def _said(self, key: str, replies: Sequence[Reply], args: JSON, asked: Asked) -> Said:
        turns = self._turns.setdefault(key, {})
        turn = turns.setdefault(asked, len(turns))
        reply = replies[min(turn, len(replies) - 1)]
        takes_ms = milliseconds(reply.delay)
        if reply.error is not None:
            error = reply.error
            return Said(None, ActionError(error.code, error.message, error.retryable, error.details), takes_ms)
        roots = {"INPUT": args, "INDEX": turn, "TRIGGER": {"payload": self._caller(asked.run_id).payload}}
        try:
            output = {} if reply.output is None else compile_template(reply.output).render(roots)
        except ExpressionError as fault:
            self.gaps.setdefault(f"the mock {key} cannot be evaluated: {fault.message}")
            return Said(None, ActionError("MOCK_INVALID", fault.message, retryable=False), takes_ms)
        return Said(output, None, takes_ms)

    def _sleep(self, args: Mapping[str, JSON]) -> JSON:
        """A sleep takes its time on the virtual clock."""
        text = args.get("duration")
        self.takes_ms = (parse_duration(text) or 0) if isinstance(text, str) else int(args.get("duration_ms") or 0)
        return {"slept_ms": self.takes_ms}


def child_action(function: Callable[[Any, ActionContext], Any]) -> Action:
    """The action that stands for a whole child workflow."""
    return Action(name=MOCKED_CHILD, function=function, blocking=False, description="A mocked child workflow.")


def stand_in(family: str, environment: JSON) -> dict[str, JSON]:
    """The document of a mocked child: one step that gives the run's output."""
    step = {"ref": "mocked", "type": "action", "action": MOCKED_CHILD, "args": {"input": "${{ TRIGGER.payload }}"}}
    document: dict[str, JSON] = {"family_slug": family, "title": f"{family}, mocked by the test", "steps": [step]}
    document["output"] = "${{ STEPS.mocked.output }}"
    return document if environment is None else {**document, "environment": environment}
