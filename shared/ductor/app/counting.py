"""Counts what a commit asks of the backend, from what it writes and sends anyway. Writes and decides nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from typing import Final

from ductor.app.headers import is_starting, listed_status
from ductor.engine.tick import Tick
from ductor.model.command import Announce, ArmWake, Command, StartAttempt
from ductor.model.enums import StepType
from ductor.model.intent import Intent, IntentKind
from ductor.model.payload import BlobRef, Payload, RowRef, payload_size
from ductor.model.run import RunState
from ductor.ports import Item, Put

BEAT_MS: Final = 10_000
"""How often a worker on Lambda renews the lease of an attempt that still runs."""

FAR_MS: Final = 900_000
"""A wake-up farther away than a queue delays a message waits in a schedule."""

WORKED: Final = frozenset({StepType.ACTION, StepType.AI_ACTION, StepType.AI_AGENT})
"""Steps whose attempts go through the steps queue."""


STARTING: Final = -1
"""In place of the wake-up that the entry of a run before its first tick stands for."""

StepTypes = Callable[[str], StepType]
"""The type of the step that a node belongs to."""


class Tally:
    """The count of one commit, begun before its tick. `used` is what the commit stores."""

    def __init__(self, state: RunState) -> None:
        self.used = copy(state.last.used)
        starting = is_starting(state)
        self._listed, self._wake = None if starting else listed_status(state), STARTING if starting else state.wake_at

    def load(self, payload: Payload) -> None:
        """The tick read a value that is kept elsewhere."""
        self.used.reads += isinstance(payload, RowRef)
        self.used.blob_reads += isinstance(payload, BlobRef)

    def take(self, intents: Sequence[Intent]) -> None:
        """The intents that the tick took, and what attempts that ended had used."""
        used = self.used
        used.commits += 1
        used.reads += 1  # the header
        used.intents += len(intents)
        for intent in intents:
            if intent.kind is IntentKind.ATTEMPT_FINISHED:
                used.ran_ms += intent.ran_ms
                used.beats += intent.ran_ms // BEAT_MS
                used.blobs += isinstance(intent.output, BlobRef)
                used.outputs += 0 if isinstance(intent.output, BlobRef) else payload_size(intent.output)

    def write(self, history: Item | None, rows: Sequence[Put]) -> None:
        """Rows that were written apart from the header."""
        self.used.history += len(history.body) if history is not None else 0
        if rows:
            self.used.rows += len(rows)
            self.used.row_bytes += sum(len(put.item.body) for put in rows)

    def decide(self, result: Tick, step_type: StepTypes) -> None:
        """What the tick asks to store, to register and to send."""
        used, state = self.used, result.state
        for stored in result.stores:
            if isinstance(stored.ref, BlobRef):
                used.blobs += 1
            else:
                used.rows += 1
                used.row_bytes += len(stored.data)
        used.rows += len(result.registrations)
        listed = listed_status(state)
        if listed is not self._listed:
            used.moves += (listed is not None) + (self._listed is not None)
        used.moves += (bool(state.wake_at) + bool(self._wake)) * (state.wake_at != self._wake)
        for command in result.commands:
            self._send(command, state, step_type)

    def _send(self, command: Command, state: RunState, step_type: StepTypes) -> None:
        used = self.used
        if isinstance(command, StartAttempt):
            used.tasks += step_type(command.node) in WORKED
        elif isinstance(command, ArmWake):
            far = command.at - state.updated_at > FAR_MS
            used.far_wakes += far
            used.wakes += not far
        elif isinstance(command, Announce):
            used.events += len(command.told)

    def share(self, puts: Sequence[Put]) -> None:
        """Rows written in one transaction with the header."""
        self.used.shared += bool(puts)
        self.used.pages += len(puts)
        self.used.page_bytes += sum(len(put.item.body) for put in puts)
