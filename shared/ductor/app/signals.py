"""Signals to one run. Each becomes an intent; the coordinator gives it to a step that waits, or keeps it for one."""

from __future__ import annotations

from typing import Final

import msgspec

from ductor.app.access import Caller, Scope, require
from ductor.app.admission import check_size
from ductor.app.control import Accepted, check_state, check_texts, look_up, operation_hash
from ductor.app.dispatch import intent_message, send_all
from ductor.app.payloads import PayloadStore
from ductor.app.refusals import invalid
from ductor.app.requests import OperatorRequest
from ductor.model.intent import IntentKind
from ductor.model.json import JSON
from ductor.ports import Clock, Ids, Queue, Table, Unit

MAX_NAME: Final = 200


class SignalRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A signal. `name` is the `event_name` of the step that is to take it."""

    request_id: str
    name: str
    payload: JSON = None
    reason: str = ""


class Signals:
    """Sends signals, idempotent by `request_id` per run like all controls."""

    def __init__(
        self, *, table: Table, payloads: PayloadStore, intents: Queue, unit: Unit, clock: Clock, ids: Ids
    ) -> None:
        self._table = table
        self._payloads = payloads
        self._intents = intents
        self._unit = unit
        self._clock = clock
        self._ids = ids

    def signal(self, caller: Caller, run_id: str, request: SignalRequest) -> Accepted:
        """Enqueue a signal. Refuses as controls do: NOT_FOUND, `RUN_TERMINAL`, `REQUEST_ID_REUSED`; 413 over 1 MB."""
        require(caller, Scope.RUN_WRITE)
        check_texts(request.request_id, request.reason)
        if not 1 <= len(request.name) <= MAX_NAME:
            raise invalid("FIELD_INVALID", f"1 to {MAX_NAME} characters", "name")
        check_size(request.payload, "payload")
        digest = operation_hash("signal", "", {"name": request.name, "payload": request.payload})
        header, answered = look_up(self._table, caller, run_id, request.request_id, digest)
        if answered:
            return Accepted(run_id)
        check_state(IntentKind.SIGNAL, header)
        kind = IntentKind.SIGNAL
        asked = OperatorRequest(caller.key_id, run_id, kind, request.request_id, request.reason, digest)
        with self._unit.batch():
            payload = self._payloads.keep(run_id, request.payload)
            intent = asked.intent(self._ids, self._clock, output=payload, body={"name": request.name})
            send_all(self._intents, [intent_message(intent, self._ids)])
        return Accepted(run_id)
