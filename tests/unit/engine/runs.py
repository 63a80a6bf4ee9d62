"""A run in the hands of a test: the real engine, one tick at a time, with attempts that the test ends."""

from __future__ import annotations

from typing import Any

from ductor.engine.fold import fold
from ductor.engine.graph import compile_graph
from ductor.engine.scopes import find
from ductor.engine.tick import Tick, tick
from ductor.model.attempt import AttemptStatus
from ductor.model.command import Command, Nudge
from ductor.model.errors import StepError
from ductor.model.intent import Intent, IntentKind
from ductor.model.json import JSON, decode
from ductor.model.payload import Inline, Payload, RowRef
from ductor.model.run import HistoryRow, LastTick, NodeState, Origin, RunState
from ductor.steps.behaviours import BEHAVIOURS
from ductor.validation.document import canonical, to_definition

START = 1_000_000


class Run:
    """A run of `document`, started at `START` with `payload`. `now` is the test's to move."""

    def __init__(self, document: dict[str, Any], payload: JSON = None) -> None:
        self.graph = compile_graph(to_definition(canonical({"family_slug": "f", **document})), BEHAVIOURS)
        self.now = START
        self.state = RunState(
            origin=Origin(
                run_id="run",
                tenant="t",
                definition_id="d",
                family_slug="f",
                definition_version=1,
                created_at=START,
                input=Inline(payload),
            ),
            updated_at=START,
        )
        self.rows: list[HistoryRow] = []
        self.commands: list[Command] = []
        self._stored: dict[str, bytes] = {}
        self._intents = 0
        self.tell(IntentKind.START)

    def tell(self, kind: IntentKind, **fields: Any) -> Tick:
        """One tick with one intent."""
        self._intents += 1
        intent = Intent(id=f"i{self._intents}", run_id="run", kind=kind, **fields)
        before = self.state.seq
        result = tick(self.graph, self.state, [intent], self.now, self._load)
        for stored in result.stores:
            key = stored.ref.sk if isinstance(stored.ref, RowRef) else stored.ref.key
            self._stored[key] = stored.data
        self.commands = list(result.commands)
        if result.transitions:
            self.rows.append(HistoryRow(1, self.state.updated_at, before + 1, result.transitions))
        self._check_fold()
        return result

    def succeed(self, node: str, output: JSON = None) -> Tick:
        """The node's present attempt ends well."""
        return self._finish(node, AttemptStatus.SUCCEEDED, output=Inline(output or {}))

    def fail(self, node: str, code: str = "BOOM", *, retryable: bool = True) -> Tick:
        """The node's present attempt fails."""
        return self._finish(node, AttemptStatus.FAILED, error=StepError(code, "no", retryable))

    def wake(self, at: int) -> Tick:
        """The run's wake-up fires at `at`."""
        self.now = at
        return self.tell(IntentKind.TIMER_FIRED)

    def status(self, node: str) -> str:
        """The node's status as people see it."""
        entry = self.entry(node)
        return entry.status.value if entry else "pending"

    def entry(self, node: str) -> NodeState | None:
        """The node's entry, wherever it lives."""
        place = find(self.graph, self.state, node)
        return place.entry if place else None

    def input(self, node: str) -> JSON:
        """What the node's present attempt was rendered to."""
        return self._load(self._known(node).input)

    @property
    def nudged(self) -> bool:
        """Whether the last tick asked for a nudge."""
        return any(isinstance(command, Nudge) for command in self.commands)

    def nudge(self) -> Tick:
        """The nudge arrives."""
        return self.tell(IntentKind.NUDGE)

    def revoke(self, node: str) -> Tick:
        """The node's present attempt was asked to stop and did."""
        return self._finish(node, AttemptStatus.REVOKED)

    def operate(self, operation: str) -> Tick:
        """An operator's request."""
        return self.tell(IntentKind(operation), request_id=f"r{self._intents}")

    def _known(self, node: str) -> NodeState:
        entry = self.entry(node)
        assert entry is not None, f"{node} was never touched"
        return entry

    def output(self, node: str) -> JSON:
        """The node's output."""
        return self._load(self._known(node).output)

    def error(self, node: str) -> str:
        """The code of the node's error."""
        found = self._known(node).error
        return found.code if found else ""

    def _finish(self, node: str, status: AttemptStatus, **fields: Any) -> Tick:
        entry = self._known(node)
        return self.tell(
            IntentKind.ATTEMPT_FINISHED,
            node=node,
            attempt=entry.attempt,
            generation=entry.generation,
            status=status,
            **fields,
        )

    def _load(self, payload: Payload) -> JSON:
        if isinstance(payload, Inline):
            return payload.value
        return decode(self._stored[payload.sk if isinstance(payload, RowRef) else payload.key])

    def _check_fold(self) -> None:
        """History, folded, is the state: after every tick of every test."""
        folded = fold(self.graph, self.state.origin, self.rows)
        self.state.last = LastTick()
        folded.version = self.state.version
        assert folded == self.state
