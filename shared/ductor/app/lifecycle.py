"""Tells the world outside what happened to runs. Events carry references and no values of the run.

Told after the commit, and again whenever the commit's commands are sent again: at least once, each event always under
the same id. Only what an operator removes from the intents queue in that moment is not told.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from ductor.engine.graph import Graph
from ductor.model.command import Announce, Announced, Command
from ductor.model.errors import clip
from ductor.model.intent import Intent
from ductor.model.json import JSON
from ductor.model.run import RunState
from ductor.model.waiting import Event
from ductor.ports import Bus, Telling, UnavailableError

TRIES: Final = 3
"""How often what the bus did not take is sent at once, before the run's message waits and all is sent again."""

MAX_TEXT: Final = 512


class Lifecycle:
    """The handler of `Announce`, for `Dispatcher`."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus

    def announce(self, _graph: Graph, state: RunState, command: Command, _mark: str) -> Iterable[Intent]:
        """Put the events on the bus, in order. Raises UnavailableError when it did not take all."""
        assert isinstance(command, Announce)
        pending = [_telling(state, told) for told in command.told]
        for _ in range(TRIES):
            failed = set(self._bus.put(pending))
            pending = [telling for place, telling in enumerate(pending) if place in failed]
            if not pending:
                return ()
        raise UnavailableError(f"the bus did not take {len(pending)} events")


def _telling(state: RunState, told: Announced) -> Telling:
    event = Event(
        event_name=told.name,
        event_id=f"{state.run_id}:{told.seq}",
        payload=_payload(state, told.seq),
        received_at=state.updated_at,
        depth=state.origin.depth,
    )
    return Telling(state.origin.tenant, event)


def _payload(state: RunState, seq: int) -> dict[str, JSON]:
    """What listeners may route on. Outputs and inputs are read over the API, by whoever may."""
    origin = state.origin
    error = state.error
    return {
        "run_id": state.run_id,
        "status": state.status.value,
        "transition_seq": seq,
        "kind": origin.kind,
        "definition_id": origin.definition_id,
        "family_slug": origin.family_slug,
        "definition_version": origin.definition_version,
        "environment": origin.environment,
        "journey_id": origin.journey_id,
        "root_run_id": origin.root_run_id or origin.run_id,
        "parent_run_id": origin.parent_run_id or None,
        "source_run_id": origin.source_run_id or None,
        "successor_run_id": state.successor.run_id if state.successor is not None else None,
        "subject_type": origin.subject_type,
        "subject_id": origin.subject_id,
        "correlation_labels": [{"key": key, "id": label_id} for key, label_id in origin.labels],
        "error": None if error is None else {"code": error.code, "message": clip(error.message, MAX_TEXT)},
        "reason": clip(state.reason, MAX_TEXT),
    }
