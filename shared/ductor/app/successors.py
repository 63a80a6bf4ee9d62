"""Continue-as-new: a run ends and another one goes on with its version, lineage and labels, and its own context."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec

from ductor.app.access import Caller, Scope, require
from ductor.app.admission import check_size
from ductor.app.control import MAX_REQUEST_ID, check_texts, look_up, operation_hash
from ductor.app.descent import Descent
from ductor.app.dispatch import intent_message, send_all
from ductor.app.headers import is_stalled, read_what_is_readable
from ductor.app.payloads import PayloadStore
from ductor.app.refusals import invalid, precondition
from ductor.app.requests import OperatorRequest
from ductor.engine.graph import Graph
from ductor.engine.lineage import continue_refusal
from ductor.model.command import Command, ForwardIntent, StartSuccessor
from ductor.model.intent import Intent, IntentKind
from ductor.model.json import JSON
from ductor.model.lineage import SUCCESSOR_DUTY, successor_run_id
from ductor.model.run import RunState, Signal
from ductor.ports import Clock, Ids, Item, Queue, Table, Unit

OPERATION: Final = "continueAsNew"


class Continued(msgspec.Struct, frozen=True):
    """The request is durably enqueued. `new_run_id` exists once it is applied; the audit trail tells a refusal."""

    run_id: str
    new_run_id: str


class Continuations:
    """Asks a run to continue as new."""

    def __init__(
        self, *, table: Table, payloads: PayloadStore, intents: Queue, unit: Unit, clock: Clock, ids: Ids
    ) -> None:
        self._table = table
        self._payloads = payloads
        self._intents = intents
        self._unit = unit
        self._clock = clock
        self._ids = ids

    def send(
        self,
        caller: Caller,
        run_id: str,
        request_id: str,
        reason: str = "",
        seed_run_context: JSON = None,
        *,
        discard_pending: bool = False,
    ) -> Continued:
        """Enqueue the move. The successor's id derives from run and request, so a repeat answers the same.

        Refuses like every control, and with FAILED_PRECONDITION `LIVE_ATTEMPTS` while attempts or child runs are live
        unless `discard_pending`; INVALID_ARGUMENT for a context that is no object.
        """
        require(caller, Scope.RUN_WRITE)
        check_texts(request_id, reason)
        context = {} if seed_run_context is None else seed_run_context
        if not isinstance(context, dict):
            raise invalid("FIELD_INVALID", "must be an object", "seed_run_context")
        check_size(context, "seed_run_context")
        digest = operation_hash(OPERATION, "", [context, discard_pending])
        header, answered = look_up(self._table, caller, run_id, request_id, digest)
        continued = Continued(run_id, successor_run_id(run_id, request_id))
        if answered:
            return continued
        _check(header, discard=discard_pending)
        asked = OperatorRequest(caller.key_id, run_id, IntentKind.CONTINUE_AS_NEW, request_id, reason, digest)
        with self._unit.batch():
            seed, body = self._payloads.keep(run_id, context), {"discard_pending": discard_pending}
            intent = asked.intent(self._ids, self._clock, output=seed, body=body)
            send_all(self._intents, [intent_message(intent, self._ids)])
        return continued


def _check(header: Item, *, discard: bool) -> None:
    """Refuse at once what can be known at once."""
    state = None if is_stalled(header) else read_what_is_readable(header)
    if state is None:
        return
    if state.status.terminal:
        raise precondition("RUN_TERMINAL", f"the run has ended: {state.status.value}")
    refusal = continue_refusal(state, discard=discard)
    if refusal is not None:
        raise precondition(*refusal)


class Successors:
    """Carries out what a run that continues as new asks for."""

    def __init__(self, descent: Descent) -> None:
        self._descent = descent

    def start(self, _graph: Graph, state: RunState, command: Command, mark: str) -> Iterable[Intent]:
        """Begin the successor: same version, trigger, subject, labels and place in the tree of runs."""
        assert isinstance(command, StartSuccessor)
        successor = state.successor
        if successor is None:
            return ()
        own, run_id = state.origin, successor.run_id
        origin = msgspec.structs.replace(
            own,
            run_id=run_id,
            created_at=self._descent.now,
            root_run_id=own.root_run_id or own.run_id,
            source_run_id=own.run_id,
            input=self._descent.copy(own.run_id, own.input, run_id),
            variables=self._descent.copy(own.run_id, own.variables, run_id),
            seed_context=self._descent.copy(own.run_id, successor.context, run_id),
        )
        self._descent.begin(origin, own.run_id, successor=True)
        if not successor.discard:
            for signal in state.signals:
                self._descent.tell(self._moved(own.run_id, run_id, signal))
        return (Intent(mark, own.run_id, IntentKind.DUTY_DONE, self._descent.now, body=SUCCESSOR_DUTY),)

    def _moved(self, source: str, run_id: str, signal: Signal) -> Intent:
        """A signal that nobody has taken, for the successor. It has a request id, so that it arrives once."""
        return Intent(
            id=f"{signal.id}~{source}",
            run_id=run_id,
            kind=IntentKind.SIGNAL,
            at=signal.at,
            request_id=f"moved:{signal.id}"[:MAX_REQUEST_ID],
            output=self._descent.copy(source, signal.payload, run_id),
            body={"name": signal.name},
        )

    def forward(self, _graph: Graph, state: RunState, command: Command, _mark: str) -> Iterable[Intent]:
        """Hand an intent on, with its own id: the successor applies it once however often it comes."""
        assert isinstance(command, ForwardIntent)
        assert state.successor is not None  # only then is anything forwarded
        return (
            Intent(
                id=command.intent_id,
                run_id=state.successor.run_id,
                kind=IntentKind(command.kind),
                at=self._descent.now,
                actor=command.actor,
                request_id=command.request_id,
                request_hash=command.request_hash,
                reason=command.reason,
                output=self._descent.copy(state.run_id, command.output, state.successor.run_id),
                body=command.body,
            ),
        )
