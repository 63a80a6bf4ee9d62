"""AI steps over in-memory stores on virtual time, with a model that says what a test wrote down."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ductor.actions.action import Action
from ductor.actions.ai.model import ModelAnswer, ModelProvider, ModelRequest, Stop, ToolCall
from ductor.actions.connection import Connection
from ductor.actions.context import ActionContext
from ductor.actions.registry import ActionRegistry
from ductor.app.ai_journal import Called, Closed, Entry, Journal, Turn
from ductor.app.ai_steps import AiSteps
from ductor.app.connected_run import NoConnections, Resolver
from ductor.app.payloads import PayloadStore
from ductor.model.attempt import ModelUse
from ductor.testing.memory import MemoryBlobs, MemoryTable, VirtualClock

RUN, NODE = "run-1", "n"


def says(text: str = "", *calls: tuple[str, dict[str, Any]], **rest: Any) -> ModelAnswer:
    """An answer; `calls` are (tool, input)."""
    made = tuple(ToolCall(f"id{place}", name, given) for place, (name, given) in enumerate(calls))
    stop = rest.pop("stop", Stop.TOOL_USE if calls else Stop.END_TURN)
    return ModelAnswer(text=text, calls=made, stop=stop, **{"input_tokens": 10, "output_tokens": 5, **rest})


class Scripted:
    """`ModelProvider` that gives the answers in order; exceptions among them are raised."""

    name = "scripted"

    def __init__(self, clock: VirtualClock, *answers: ModelAnswer | Exception) -> None:
        self._clock = clock
        self.answers = list(answers)
        self.requests: list[ModelRequest] = []
        self.keys: list[str] = []

    def ask(self, request: ModelRequest, ctx: ActionContext) -> ModelAnswer:
        self.requests.append(request)
        self.keys.append(ctx.idempotency_key)
        self._clock.advance(100)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def read(self, place: int = -1) -> str:
        """All that the model read in one request, as one text."""
        return " ".join(
            [self.requests[place].system, *(f"{one.text} {one.results}" for one in self.requests[place].messages)]
        )


class Room:
    """One run's stores and one model. `calls` are the tool calls that were executed: name, input, key."""

    def __init__(self, *answers: ModelAnswer | Exception, connections: Resolver | None = None) -> None:
        self.clock = VirtualClock()
        self.table = MemoryTable()
        self.payloads = PayloadStore(self.table, MemoryBlobs())
        self.journal = Journal(self.table, self.payloads)
        self.model = Scripted(self.clock, *answers)
        self.connections = connections or NoConnections()
        self.calls: list[tuple[str, Any, str]] = []
        self.used: list[ModelUse] = []
        self.actions: list[Action] = []

    def tool(self, name: str, function: Callable[[Any, ActionContext], Any], **options: Any) -> None:
        """An action of this installation; its executions are noted."""

        def run(args: Any, ctx: ActionContext) -> Any:
            self.calls.append((name, args, ctx.idempotency_key))
            return function(args, ctx)

        self.actions.append(Action(name=name, function=run, **options))

    def steps(self, *more: tuple[str, ModelProvider]) -> AiSteps:
        return AiSteps(
            providers={"": self.model, **dict(more)},
            registry=ActionRegistry(self.actions),
            connections=self.connections,
            journal=self.journal,
            clock=self.clock,
        )

    def context(self, attempt: int = 1, connection: Connection | None = None, **rest: Any) -> ActionContext:
        return ActionContext(
            run_id=RUN,
            tenant="t",
            node=NODE,
            attempt=attempt,
            idempotency_key=f"{RUN}/{NODE}",
            connection=connection,
            on_usage=self.used.append,
            environment="prod",
            **rest,
        )

    def call(self, attempt: int = 1, **args: Any) -> dict[str, Any]:
        """One attempt of an `ai_action`."""
        return self.steps().call({"model": "m", "prompt": "hello", "max_tokens": 50, **args}, self.context(attempt))

    def agent(self, attempt: int = 1, tools: Sequence[Any] = (), **args: Any) -> dict[str, Any]:
        """One attempt of an `ai_agent`."""
        base = {"model": "m", "prompt": "hello", "max_tokens": 50, "max_turns": 5, "tools": list(tools)}
        return self.steps().agent({**base, **args}, self.context(attempt))

    def recorded(self) -> list[Entry]:
        return self.journal.all_of(RUN, NODE)

    def kinds(self) -> str:
        """The recorded entries, one letter each: Turn, tool Call, closed (X)."""
        return "".join({Turn: "T", Called: "C", Closed: "X"}[type(entry)] for entry in self.recorded())
