"""`ai_action` and `ai_agent` as a worker runs them: the moves of a conversation, one after the other, each recorded."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeVar

import msgspec

from ductor.actions.action import Action
from ductor.actions.ai.model import Message, ModelProvider, ModelRequest, ToolSpec
from ductor.actions.context import ActionContext
from ductor.actions.errors import ActionError
from ductor.actions.registry import ActionRegistry
from ductor.app.ai_journal import Called, Closed, Conversation, Journal, Turn
from ductor.app.ai_moves import AskModel, Finish, GiveUp, Rules, RunTool, next_move, turns_of
from ductor.app.ai_output import instruction
from ductor.app.ai_tools import Toolbox
from ductor.app.connected_run import Resolver
from ductor.model.attempt import ModelUse
from ductor.model.enums import StepType
from ductor.model.json import JSON, encode
from ductor.ports import Clock, UnavailableError
from ductor.steps import ai_action, ai_agent
from ductor.steps.ai_action import Role
from ductor.steps.reading import ArgsInvalidError

CALL_TIMEOUT_MS: Final = 120_000
AGENT_TIMEOUT_MS: Final = 600_000
"""Longest attempts when the step does not say."""

MIN_CALL_MS: Final = 1_000
ANSWERS: Final = 2
"""Turns of an `ai_action`: its call, and one repair of an answer that does not fit."""

Args = TypeVar("Args", bound=ai_action.Call)


class AiSteps:
    """The AI steps of an installation. `providers` by the type of the step's connection, `""` for steps without."""

    def __init__(
        self,
        *,
        providers: Mapping[str, ModelProvider],
        registry: ActionRegistry,
        connections: Resolver,
        journal: Journal,
        clock: Clock,
    ) -> None:
        self._providers = providers
        self._registry = registry
        self._connections = connections
        self._journal = journal
        self._clock = clock

    def actions(self) -> dict[str, Action]:
        """What a worker runs for each of the step types, by the type's name."""
        call, agent = StepType.AI_ACTION.value, StepType.AI_AGENT.value
        return {
            call: Action(name=call, function=self.call, timeout_ms=CALL_TIMEOUT_MS, description="One model call."),
            agent: Action(name=agent, function=self.agent, timeout_ms=AGENT_TIMEOUT_MS, description="A tool loop."),
        }

    def call(self, args: dict[str, JSON], ctx: ActionContext) -> dict[str, JSON]:
        """The output of an `ai_action`. Raises ActionError."""
        call = _parsed(ai_action.parse_args, args)
        rules = Rules(opening=_opening(call), max_turns=ANSWERS, schema=call.output_schema)
        talk, end = self._talk(call, rules, Toolbox((), self._registry, self._connections), args, ctx)
        return {**_answer(call, end), "usage": _usage(talk), "stop_reason": end.stop.value}

    def agent(self, args: dict[str, JSON], ctx: ActionContext) -> dict[str, JSON]:
        """The output of an `ai_agent`. Raises ActionError."""
        call = _parsed(ai_agent.parse_args, args)
        tools = Toolbox(call.toolset(), self._registry, self._connections)
        rules = Rules(
            opening=_opening(call),
            max_turns=call.max_turns,
            tokens=call.budget.tokens,
            schema=call.output_schema,
            tools=True,
            whole=True,
        )
        talk, end = self._talk(call, rules, tools, args, ctx)
        turns = len(turns_of(talk.entries))
        return {**_answer(call, end), "turns": turns, "usage": _usage(talk), "stop_reason": end.stop.value}

    def _talk(
        self, call: ai_action.Call, rules: Rules, tools: Toolbox, args: dict[str, JSON], ctx: ActionContext
    ) -> tuple[Conversation, Finish]:
        """Go on with the conversation until it ends. A crash anywhere loses at most the move that was being made."""
        provider = self._provider(ctx)
        talk = self._journal.open(ctx.run_id, ctx.node, _digest(args, ctx), ctx.attempt)
        while True:
            move = next_move(rules, talk.entries)
            if isinstance(move, Finish):
                return talk, move
            if isinstance(move, GiveUp):
                self._close(talk, move, ctx)
                raise ActionError(move.code, move.message, move.retryable, _usage(talk))
            ctx.heartbeat({"turn": len(turns_of(talk.entries)) + isinstance(move, AskModel)})
            if not ctx.held():
                # Another worker may be making this very move. It costs nothing to leave it to the next delivery.
                raise UnavailableError("the lease of the attempt could not be renewed in time")
            if isinstance(move, AskModel):
                self._ask(talk, provider, _request(call, move, tools.specs), ctx)
            else:
                self._run(talk, tools, move, ctx)

    def _close(self, talk: Conversation, move: GiveUp, ctx: ActionContext) -> None:
        if not isinstance(talk.entries[-1], Closed):
            closed = Closed(code=move.code, at=self._clock.now_ms(), attempt=ctx.attempt)
            self._journal.append(talk, closed, ctx.connection)

    def _provider(self, ctx: ActionContext) -> ModelProvider:
        kind = ctx.connection.type if ctx.connection is not None else ""
        provider = self._providers.get(kind)
        if provider is None:
            usable = ", ".join(sorted(filter(None, self._providers)))
            message = f"connections of type {kind} lead to no model; use one of type {usable}"
            raise ActionError("CONNECTION_TYPE_MISMATCH", message, retryable=False)
        return provider

    def _ask(self, talk: Conversation, provider: ModelProvider, request: ModelRequest, ctx: ActionContext) -> None:
        began = self._clock.now_ms()
        left = max(MIN_CALL_MS, ctx.deadline - began) if ctx.deadline else CALL_TIMEOUT_MS
        key = f"{_key(talk, ctx)}/t{len(turns_of(talk.entries))}/{ctx.attempt}"
        answer = provider.ask(
            msgspec.structs.replace(request, timeout_ms=left), msgspec.structs.replace(ctx, idempotency_key=key)
        )
        ended = self._clock.now_ms()
        took = max(0, ended - began)
        ctx.on_usage(ModelUse(provider.name, request.model, 1, answer.input_tokens, answer.output_tokens, took))
        turn = Turn(
            answer=answer,
            provider=provider.name,
            model=request.model,
            took_ms=took,
            at=ended,
            attempt=ctx.attempt,
            opens="" if talk.entries else talk.opens,
        )
        self._journal.append(talk, turn, ctx.connection)

    def _run(self, talk: Conversation, tools: Toolbox, move: RunTool, ctx: ActionContext) -> None:
        began = self._clock.now_ms()
        outcome = tools.run(move.call, ctx, f"{_key(talk, ctx)}/t{move.turn}.{move.place}")
        ended = self._clock.now_ms()
        called = Called(
            tool=outcome.tool,
            result=outcome.result,
            took_ms=max(0, ended - began),
            at=ended,
            attempt=ctx.attempt,
            code=outcome.code,
        )
        self._journal.append(talk, called, ctx.connection)


def _parsed(parse: Callable[[JSON], Args], args: JSON) -> Args:
    try:
        return parse(args)
    except ArgsInvalidError as fault:
        raise ActionError("ACTION_ARGS_INVALID", str(fault), retryable=False) from None


def _opening(call: ai_action.Call) -> tuple[Message, ...]:
    if call.messages is not None:
        return tuple(Message(one.role is Role.ASSISTANT, one.content) for one in call.messages)
    return (Message(False, call.prompt or ""),)


def _request(call: ai_action.Call, move: AskModel, tools: Sequence[ToolSpec]) -> ModelRequest:
    told = [call.system] if call.system else []
    if call.output_schema is not None:
        told.append(instruction(call.output_schema))
    return ModelRequest(
        model=call.model,
        messages=move.messages,
        max_tokens=call.max_tokens,
        system="\n\n".join(told),
        tools=tuple(tools),
        temperature=call.temperature,
        schema=call.output_schema,
    )


def _answer(call: ai_action.Call, end: Finish) -> dict[str, JSON]:
    return {"text": end.text} if call.output_schema is None else {"object": end.value}


def _usage(talk: Conversation) -> dict[str, JSON]:
    """What the whole conversation used, whichever attempts it took."""
    turns = turns_of(talk.entries)
    return {
        "provider": turns[-1][0].provider if turns else "",
        "model": turns[-1][0].model if turns else "",
        "calls": len(turns),
        "tool_calls": sum(len(results) for _, results in turns),
        "input_tokens": sum(turn.answer.input_tokens for turn, _ in turns),
        "output_tokens": sum(turn.answer.output_tokens for turn, _ in turns),
        "latency_ms": sum(turn.took_ms for turn, _ in turns),
    }


def _key(talk: Conversation, ctx: ActionContext) -> str:
    """What the keys of a conversation's calls begin with."""
    return f"{ctx.idempotency_key}/c{talk.number}"


def _digest(args: dict[str, JSON], ctx: ActionContext) -> str:
    """What a conversation is about: the step's input, under its idempotency key."""
    return hashlib.sha256(encode([ctx.idempotency_key, args])).hexdigest()[:32]
