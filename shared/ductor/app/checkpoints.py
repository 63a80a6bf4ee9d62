"""Synchronous triggers: waits until a run reaches its response checkpoint, and renders what the checkpoint answers."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Final

import msgspec

from ductor.app.headers import HEAD, read_header, run_pk
from ductor.app.payloads import PayloadStore
from ductor.app.shared_cache import SharedCache
from ductor.engine.context import TickContext
from ductor.engine.graph import Graph, compile_graph
from ductor.expressions import ExpressionError, compile_template
from ductor.model.definition import Checkpoint, Definition
from ductor.model.enums import RunStatus
from ductor.model.errors import StepError
from ductor.model.json import JSON
from ductor.model.payload import Payload
from ductor.model.run import RunState, effective_status
from ductor.ports import Clock, Table
from ductor.steps.behaviours import BEHAVIOURS

FIRST_PAUSE_MS: Final = 10
LONGEST_PAUSE_MS: Final = 250

Pause = Callable[[int], None]
"""Lets so many milliseconds pass."""


class Reached(msgspec.Struct, frozen=True):
    """How the wait ended. `reached` is false when time was up, or the run ended without reaching the checkpoint.

    `output` is the checkpoint's output, or the step's own when it declares none; `error` says why it could not be
    rendered.
    """

    status: RunStatus
    reached: bool
    output: JSON = None
    error: StepError | None = None


def pause(milliseconds: int) -> None:
    """Real time passes; the thread that answers this one request waits."""
    threading.Event().wait(milliseconds / 1000)


class CheckpointWait:
    """Polls the run's header: first every 10 ms, then ever more slowly, up to every 250 ms."""

    def __init__(self, table: Table, payloads: PayloadStore, clock: Clock, wait: Pause = pause) -> None:
        self._table = table
        self._payloads = payloads
        self._clock = clock
        self._wait = wait
        self._graphs: SharedCache[str, Graph] = SharedCache(64)

    def until_reached(self, run_id: str, definition: Definition, point: Checkpoint, timeout_ms: int) -> Reached:
        """Wait at most `timeout_ms`. The run goes on whatever comes of it here."""
        deadline = self._clock.now_ms() + timeout_ms
        step = FIRST_PAUSE_MS
        while True:
            state = self._state(run_id)
            if point.name in state.checkpoints:
                return self._answer(state, definition, point)
            left = deadline - self._clock.now_ms()
            if state.status.terminal or left <= 0:
                return Reached(_shown(state), reached=False)
            self._wait(min(step, left))
            step = min(step * 3 // 2, LONGEST_PAUSE_MS)

    def _state(self, run_id: str) -> RunState:
        item = self._table.get(run_pk(run_id), HEAD)
        if item is None:
            raise LookupError(f"run {run_id} was admitted and is gone")
        return read_header(item)

    def _answer(self, state: RunState, definition: Definition, point: Checkpoint) -> Reached:
        try:
            output = self._render(state, definition, point)
        except ExpressionError as fault:
            error = StepError(fault.code, fault.message, retryable=False)
            return Reached(_shown(state), reached=True, error=error)
        return Reached(_shown(state), reached=True, output=output)

    def _render(self, state: RunState, definition: Definition, point: Checkpoint) -> JSON:
        """Steps that ended after the checkpoint may already show; what it reads of earlier ones never changes."""

        def load(payload: Payload) -> JSON:
            return self._payloads.load(state.run_id, payload)

        if point.output is None:
            node = state.root.nodes.get(point.step_ref)
            return load(node.output) if node else None
        template = compile_template(point.output)
        context = TickContext(self._graph(state, definition), state, self._clock.now_ms(), load)
        return template.render(context.bindings(template.reads))

    def _graph(self, state: RunState, definition: Definition) -> Graph:
        return self._graphs.get(state.origin.definition_id, lambda: compile_graph(definition, BEHAVIOURS))


def response_checkpoint(definition: Definition) -> Checkpoint | None:
    """The checkpoint that answers synchronous triggers; a definition has at most one."""
    return next((point for point in definition.checkpoints if point.response), None)


def _shown(state: RunState) -> RunStatus:
    """A trigger never answers `pending` for a run that waits for nothing but its first tick."""
    return RunStatus.RUNNING if state.status is RunStatus.PENDING else effective_status(state)
