"""Admission of runs: a trigger becomes a stored run header and a `start` intent, once per idempotency key."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from ductor.app.access import Caller, Scope, require
from ductor.app.admission import (
    DEFAULT_CHECKPOINT_SECONDS,
    TriggerRequest,
    check_request,
    frozen_variables,
    request_hash,
)
from ductor.app.checkpoints import CheckpointWait, Pause, Reached, pause, response_checkpoint
from ductor.app.dispatch import intent_message, send_all
from ductor.app.gate import Entry, Gate
from ductor.app.headers import HEAD, header_item, is_expiring, is_stalled, read_what_is_readable, run_pk
from ductor.app.idempotency import IDEM, Admitted, idempotency_pk, key_digest
from ductor.app.library import Library, Standing
from ductor.app.payloads import PayloadStore
from ductor.app.refusals import aborted, invalid, precondition
from ductor.app.run_index import index_puts
from ductor.app.slot_admission import SlotAdmission
from ductor.model.definition import Checkpoint, Definition
from ductor.model.enums import DefinitionStatus, RunStatus
from ductor.model.errors import ErrorCode, RefusedError, refuse
from ductor.model.intent import Intent, IntentKind
from ductor.model.json import JSON
from ductor.model.run import Origin, RunState, effective_status
from ductor.ports import Clock, Conflict, Expect, Ids, Item, Op, Put, Queue, Table, UnavailableError, Unit

START_WAKE_MS: Final = 60_000
"""How long after admission somebody looks whether the run was ever started."""

_OPEN: Final = Entry({}, None)
_MAX_RACES: Final = 50
"""Lost races in a row: each winner is a trigger that was admitted, or a change of the environment."""


class Triggered(msgspec.Struct, frozen=True):
    """The answer of a trigger. `repeated`: the run had been made by an earlier request with the same key.

    `checkpoint` says how waiting for the response checkpoint ended, None when it was not asked for.
    """

    run_id: str
    status: RunStatus
    repeated: bool
    checkpoint: Reached | None = None


class Cause(msgspec.Struct, frozen=True, kw_only=True):
    """What starts a run when no caller does: an event, or an instant of a schedule (`scheduled_at`, epoch ms).

    `run_id` derives from it, so that one cause never starts two runs. `event` is TRIGGER.event, `by` who shows as the
    run's creator.
    """

    run_id: str
    event: JSON = None
    scheduled_at: int = 0
    by: str = ""


class Triggers:
    """Starts runs of published definitions."""

    def __init__(  # noqa: PLR0913 (one parameter per port)
        self,
        *,
        table: Table,
        payloads: PayloadStore,
        intents: Queue,
        unit: Unit,
        clock: Clock,
        ids: Ids,
        library: Library,
        gate: Gate | None = None,
        wait: Pause = pause,
    ) -> None:
        self._checkpoints = CheckpointWait(table, payloads, clock, wait)
        self._slots = SlotAdmission(table, payloads, clock)
        self._table = table
        self._payloads = payloads
        self._intents = intents
        self._unit = unit
        self._clock = clock
        self._ids = ids
        self._library = library
        self._gate = gate

    def trigger(self, caller: Caller, definition_id: str, request: TriggerRequest) -> Triggered:
        """Admit a run; when this returns, the run survives any crash.

        One run per (tenant, definition, idempotency key), whatever becomes of it: a repeat with the same body gets
        that run, another body is ALREADY_EXISTS `IDEMPOTENCY_KEY_REUSED`. Refuses with NOT_FOUND, FAILED_PRECONDITION
        `DEFINITION_NOT_PUBLISHED` or `DEFINITION_ARCHIVED`, INVALID_ARGUMENT, PAYLOAD_TOO_LARGE, and as `Gate.admit`
        does, before a run exists.
        With `wait_for_checkpoint` it returns when the response checkpoint is reached, the run ends, or time is up.
        """
        require(caller, Scope.WORKFLOW_WRITE)
        check_request(request)
        row = self._library.standing(caller.tenant, definition_id)
        done = self._trigger(caller, row, request)
        if not request.wait_for_checkpoint:
            return done
        definition = self._library.load(caller.tenant, row.id)[1]
        reached = self._checkpoints.until_reached(
            done.run_id, definition, _required_checkpoint(definition), _timeout_ms(request)
        )
        return msgspec.structs.replace(done, status=reached.status, checkpoint=reached)

    def _trigger(self, caller: Caller, row: Standing, request: TriggerRequest) -> Triggered:
        digest = request_hash(request)
        known = self._repeat_of(row, request, digest)
        if known is not None:
            return known
        _check_published(row)
        _, definition = self._library.load(caller.tenant, row.id)
        if request.wait_for_checkpoint:
            _required_checkpoint(definition)
        _check_input(definition, request.input)
        for _ in range(_MAX_RACES):
            try:
                done = self._admit(caller, row, definition, request, digest)
            except RefusedError:
                # Another request with the same key may have been admitted meanwhile, and taken what this one lacks.
                done = self._repeat_of(row, request, digest)
                if done is None:
                    raise
            if done is not None:
                return done
        raise aborted("TRIGGER_BUSY", "the environment, or who runs, changes all the time; try again")

    def _repeat_of(self, row: Standing, request: TriggerRequest, digest: str) -> Triggered | None:
        key = request.idempotency_key
        known = self._table.get(_key_pk(row, key), IDEM) if key is not None else None
        return self._repeat(known, digest) if known is not None else None

    def _admit(
        self, caller: Caller, row: Standing, definition: Definition, request: TriggerRequest, digest: str
    ) -> Triggered | None:
        """The run, or None when environment or slots were changed between the look at them and the write."""
        entry = self._gate.admit(caller, definition, request.external_deployment_id) if self._gate else _OPEN
        variables = frozen_variables(definition, request.variables, entry.variables)
        run_id = self._ids.uuid()
        with self._unit.batch():
            state = self._first_state(caller, row, definition, request, run_id, variables)
            also: list[Op] = []
            if request.idempotency_key is not None:
                body = msgspec.json.encode(Admitted(run_id, digest))
                pk = _key_pk(row, request.idempotency_key)
                also.append(Put(Item(pk=pk, sk=IDEM, body=body), Expect.ABSENT))
            guarded = 1 + len(also)
            also += [entry.guard] if entry.guard is not None else []
            done = self._store(state, definition, also)
        if isinstance(done, Triggered):
            return done
        if done.index >= guarded:
            return None
        if done.current is None or done.index == 0:
            raise RuntimeError(f"run {run_id} could not be admitted: {done}")
        return self._repeat(done.current, digest)

    def _store(self, state: RunState, definition: Definition, also: Sequence[Op]) -> Triggered | Conflict:
        """Write the first header, then `also`, then what its slot needs, all or nothing; and have the run started."""
        door = self._slots.enter(state, definition)
        lost = self._table.write([Put(header_item(state), Expect.ABSENT), *also, *door.ops])
        if lost is not None:
            return lost
        # Apart, because DynamoDB bills a transaction double. If this gets lost the run's first commit makes up for it.
        rows = index_puts(state.origin, (), first=True)
        for row in rows:
            self._table.write((row,))
        self._send_start(state, findable=True)
        return Triggered(state.run_id, RunStatus.PENDING if door.waits else RunStatus.RUNNING, repeated=False)

    def _first_state(
        self,
        caller: Caller,
        row: Standing,
        definition: Definition,
        request: TriggerRequest,
        run_id: str,
        variables: dict[str, JSON],
    ) -> RunState:
        """The header before the first tick. Large values are stored first, so that it never refers to nothing."""
        now = self._clock.now_ms()
        origin = Origin(
            run_id=run_id,
            tenant=caller.tenant,
            definition_id=row.id,
            family_slug=row.family_slug,
            definition_version=row.version,
            created_at=now,
            journey_id=run_id,
            environment=definition.environment,
            root_run_id=run_id,
            subject_type=request.subject_type,
            subject_id=request.subject_id,
            labels=tuple((label.key, label.id) for label in request.correlation_labels),
            input=self._payloads.keep(run_id, request.input),
            variables=self._payloads.keep(run_id, variables),
            external_deployment_id=request.external_deployment_id,
            created_by=caller.key_id,
            idempotency="" if request.idempotency_key is None else key_digest(request.idempotency_key),
            depth=request.depth,
        )
        return RunState(origin=origin, updated_at=now, wake_at=now + START_WAKE_MS)

    def start(self, tenant: str, definition_id: str, request: TriggerRequest, cause: Cause) -> Triggered:
        """Admit the run of a cause, once: asked again it is the run that is there, whatever became of it.

        Refuses as `trigger` does, but nobody's authority is asked for, and releases are not pinned.
        """
        done = self.start_with(tenant, definition_id, request, cause, ())
        if done is None:
            raise RuntimeError(f"run {cause.run_id} was refused by a condition that nobody made")
        return done

    def start_with(
        self, tenant: str, definition_id: str, request: TriggerRequest, cause: Cause, also: tuple[Op, ...]
    ) -> Triggered | None:
        """As `start`, and `also` is written with the run's header or not at all; None when one of its conditions is

        lost. A run that was there before (`repeated`) is no write: then nothing of `also` is stored.
        """
        check_request(request)
        known = self._table.get(run_pk(cause.run_id), HEAD)
        if known is not None:
            return self._known(cause.run_id, known)
        row = self._library.standing(tenant, definition_id)
        _check_published(row)
        definition = self._library.load(tenant, row.id)[1]
        _check_input(definition, request.input)
        environment = self._gate.enter(tenant, definition).variables if self._gate else {}
        variables = frozen_variables(definition, request.variables, environment)
        nobody = Caller(cause.by, tenant, frozenset())

        def caused() -> RunState:
            state = self._first_state(nobody, row, definition, request, cause.run_id, variables)
            state.origin = msgspec.structs.replace(state.origin, event=cause.event, scheduled_at=cause.scheduled_at)
            return state

        return self._store_once(cause.run_id, caused, definition, also)

    def _store_once(
        self, run_id: str, make: Callable[[], RunState], definition: Definition, also: tuple[Op, ...]
    ) -> Triggered | None:
        """The run, stored now or there before; None when a condition of `also` was lost."""
        for _ in range(_MAX_RACES):
            try:
                with self._unit.batch():
                    done = self._store(make(), definition, also)
            except RefusedError:
                # Somebody else may have admitted the run meanwhile, and that took what this one lacks.
                known = self._table.get(run_pk(run_id), HEAD)
                if known is None:
                    raise
                return self._known(run_id, known)
            if isinstance(done, Triggered):
                return done
            if done.index == 0 and done.current is not None:
                return self._known(run_id, done.current)
            if done.index <= len(also):
                return None
        raise UnavailableError(f"who runs changes all the time; run {run_id} is to be asked for again")

    def _repeat(self, known: Item, digest: str) -> Triggered:
        admitted = msgspec.json.decode(known.body, type=Admitted)
        if admitted.request_hash != digest:
            raise _reused(admitted.run_id)
        item = self._table.get(run_pk(admitted.run_id), HEAD)
        if item is None or is_expiring(item):
            raise aborted("TRIGGER_BUSY", f"run {admitted.run_id} of this key is being removed; try again")
        return self._known(admitted.run_id, item)

    def _known(self, run_id: str, item: Item) -> Triggered:
        """A run that had been admitted before."""
        state = read_what_is_readable(item)
        if state is None or is_stalled(item):
            return Triggered(run_id, RunStatus.RUNNING, repeated=True)
        if state.started_at or state.status.terminal:
            return Triggered(run_id, effective_status(state), repeated=True)
        # The first request may have died between storing the run and sending this.
        self._send_start(state)
        waits = state.slot is not None and state.slot.awaited
        shown = RunStatus.RUNNING if state.status is RunStatus.PENDING and not waits else state.status
        return Triggered(run_id, shown, repeated=True)

    def _send_start(self, state: RunState, *, findable: bool = False) -> None:
        """Ask for the first tick. The intent's id is the same at every send, so it is applied once.

        `findable`: the rows that find the run are written, so that the first commit need not write them again.
        """
        intent = Intent(
            id=f"{state.run_id}:start",
            run_id=state.run_id,
            kind=IntentKind.START,
            at=self._clock.now_ms(),
            actor=state.origin.created_by,
            findable=findable,
        )
        send_all(self._intents, [intent_message(intent, self._ids)])


def _key_pk(row: Standing, key: str) -> str:
    return idempotency_pk(row.tenant, row.id, key_digest(key))


def _check_input(definition: Definition, value: JSON) -> None:
    if definition.input_schema is not None:
        # Only here: what applies schemas takes 80 ms to import, at every start of a server and of a function.
        from ductor.app.input_schema import check_input

        check_input(definition, value)


def _check_published(row: Standing) -> None:
    if row.status is DefinitionStatus.DRAFT:
        message = "this is a draft; publish it and trigger the id of the published version"
        raise precondition("DEFINITION_NOT_PUBLISHED", message, "definition_id")
    if row.status is DefinitionStatus.ARCHIVED:
        message = "this version is archived and starts no new runs; trigger another version"
        raise precondition("DEFINITION_ARCHIVED", message, "definition_id")


def _required_checkpoint(definition: Definition) -> Checkpoint:
    point = response_checkpoint(definition)
    if point is None:
        message = "this definition has no response checkpoint to wait for"
        raise invalid("CHECKPOINT_REQUIRED", message, "wait_for_checkpoint")
    return point


def _timeout_ms(request: TriggerRequest) -> int:
    seconds = request.checkpoint_timeout_seconds
    return int((DEFAULT_CHECKPOINT_SECONDS if seconds is None else seconds) * 1000)


def _reused(run_id: str) -> RefusedError:
    message = f"this idempotency key was used with another body for run {run_id}; use a new key for a new request"
    return refuse(ErrorCode.ALREADY_EXISTS, "IDEMPOTENCY_KEY_REUSED", message, "idempotency_key")
