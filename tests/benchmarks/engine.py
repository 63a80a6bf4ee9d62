"""CPU time of the pure engine: a chain of action steps, two intents a step counted as one, no storage."""

from __future__ import annotations

import time
from typing import Final

from tests.benchmarks.definitions import chain

from ductor.engine.graph import Graph, compile_graph
from ductor.engine.tick import tick
from ductor.model.attempt import AttemptStatus
from ductor.model.command import StartAttempt
from ductor.model.enums import RunStatus
from ductor.model.intent import Intent, IntentKind
from ductor.model.json import JSON
from ductor.model.payload import Inline, Payload
from ductor.model.run import Origin, RunState
from ductor.steps.behaviours import BEHAVIOURS
from ductor.validation.document import canonical, to_definition

RUN: Final = "run"
BEST_OF: Final = 15


def microseconds_per_step(length: int) -> float:
    """The best of several runs of a chain of `length` steps, from its start to its end."""
    graph = compile_graph(to_definition(canonical(chain(length))), BEHAVIOURS)
    return min(_run(graph) for _ in range(BEST_OF)) / length * 1e6


def _run(graph: Graph) -> float:
    origin = Origin(run_id=RUN, tenant="t", definition_id="d", family_slug="f", definition_version=1, created_at=1)
    state = RunState(origin=origin)
    began = time.process_time()
    result = tick(graph, state, [Intent(id="start", run_id=RUN, kind=IntentKind.START)], 1_000, _inline)
    while starts := [command for command in result.commands if isinstance(command, StartAttempt)]:
        result = tick(graph, state, [_finished(command) for command in starts], 1_000, _inline)
    seconds = time.process_time() - began
    assert state.status is RunStatus.COMPLETED
    return seconds


def _finished(command: StartAttempt) -> Intent:
    return Intent(
        id=f"{command.node}/{command.attempt}",
        run_id=RUN,
        kind=IntentKind.ATTEMPT_FINISHED,
        node=command.node,
        attempt=command.attempt,
        generation=command.generation,
        status=AttemptStatus.SUCCEEDED,
        output=Inline({"n": 1}),
    )


def _inline(payload: Payload) -> JSON:
    raise LookupError(f"{payload} should be inline here")
