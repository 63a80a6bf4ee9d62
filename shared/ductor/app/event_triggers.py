"""Runs that events start: which definitions listen, what each run gets, and what becomes of one that is refused."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import Final, TypeVar

import msgspec

from ductor.app.access import Caller
from ductor.app.admission import Label, TriggerRequest, frozen_variables
from ductor.app.events import Started
from ductor.app.gate import Gate
from ductor.app.library import Library
from ductor.app.refusals import invalid
from ductor.app.refused_starts import RefusedPage, RefusedStart, RefusedStarts
from ductor.app.subscriptions import Subscriptions, matches
from ductor.app.trigger import Cause, Triggers
from ductor.app.waiters import view_of
from ductor.expressions import Budget, ExpressionError, Reads, compile_cel, compile_template
from ductor.model.causation import depth_of_started
from ductor.model.definition import Definition, Trigger
from ductor.model.enums import DefinitionStatus
from ductor.model.errors import RefusedError, Violation
from ductor.model.json import JSON
from ductor.model.lineage import derived_run_id
from ductor.model.waiting import Event, event_digest
from ductor.ports import Table, UnavailableError

BY_EVENT: Final = "event"
"""Who shows as the creator of such a run."""

T = TypeVar("T")

_log = logging.getLogger(__name__)


class _Listener(msgspec.Struct, frozen=True):
    """A version that an event may start, and the id of the run that it would get."""

    definition_id: str
    definition: Definition
    run_id: str


class EventTriggers:
    """Starts the runs of an event (`events.Starts`).

    One run per event, family and environment, of the family's newest version there. Its id derives from those, so a
    publisher that died is gone on from, and a version published meanwhile makes no second one. Of several triggers of
    a definition the first that holds counts. A refusal is recorded and stops nobody else; only an outage ends the
    whole, and whoever publishes tries again.
    """

    def __init__(self, *, table: Table, library: Library, triggers: Triggers, gate: Gate | None = None) -> None:
        self._library = library
        self._triggers = triggers
        self._gate = gate
        self._subscriptions = Subscriptions(table, library)
        self._records = RefusedStarts(table)

    def listens(self, tenant: str, event_name: str) -> bool:
        """Whether any family of the tenant may be started by such an event."""
        return bool(self._subscriptions.families(tenant, event_name))

    def refused(self, caller: Caller, limit: int | None, cursor: str | None) -> RefusedPage:
        """See `RefusedStarts.list`."""
        return self._records.list(caller, limit, cursor)

    def start(self, tenant: str, event: Event) -> Started:
        """Start what the event starts; again for an event whose first publisher died."""
        refused: list[RefusedStart] = []
        wanted: list[tuple[_Listener, TriggerRequest]] = []
        for listener in self._listeners(tenant, event):
            request = self._first_that_holds(tenant, event, listener, refused)
            if request is not None:
                wanted.append((listener, request))
        depth = depth_of_started(event.event_name, event.depth, len(wanted))
        started: list[str] = []
        for listener, request in wanted:

            def admit(listener: _Listener = listener, request: TriggerRequest = request) -> str:
                return self._admit(tenant, event, listener, request, depth)

            run_id = self._guarded(tenant, event, listener, refused, admit)
            started += [run_id] if run_id is not None else []
        return Started(tuple(started), tuple(refused))

    def _listeners(self, tenant: str, event: Event) -> Iterator[_Listener]:
        """The newest versions, per environment, of the families that the index names."""
        digest = event_digest(event.event_name, event.correlation_key, event.event_id)
        for slug in self._subscriptions.families(tenant, event.event_name):
            family, _ = self._library.family(tenant, slug)
            for environment, definition_id in sorted(family.newest_in.items()):
                if self._library.standing(tenant, definition_id).status is DefinitionStatus.PUBLISHED:
                    definition = self._library.load(tenant, definition_id)[1]
                    run_id = derived_run_id("event", tenant, slug, environment, digest)
                    yield _Listener(definition_id, definition, run_id)

    def _first_that_holds(
        self, tenant: str, event: Event, listener: _Listener, refused: list[RefusedStart]
    ) -> TriggerRequest | None:
        for trigger in listener.definition.triggers:
            if any(matches(pattern, event.event_name) for pattern in trigger.patterns):

                def request(trigger: Trigger = trigger) -> TriggerRequest | None:
                    return self._request(tenant, event, listener.definition, trigger)

                found = self._guarded(tenant, event, listener, refused, request)
                if found is not None:
                    return found
        return None

    def _request(self, tenant: str, event: Event, definition: Definition, trigger: Trigger) -> TriggerRequest | None:
        """What the trigger makes of the event, None if its condition is false. Raises RefusedError, ExpressionError."""
        bindings: dict[str, JSON] = {"EVENT": view_of(event)}

        def bound(reads: Reads) -> dict[str, JSON]:
            if "VARS" in reads.roots and "VARS" not in bindings:
                environment = self._gate.enter(tenant, definition).variables if self._gate else {}
                bindings["VARS"] = frozen_variables(definition, {}, environment)
            return bindings

        def rendered(template: JSON) -> JSON:
            compiled = compile_template(template)
            return compiled.render(bound(compiled.reads), Budget())

        if trigger.condition:
            program = compile_cel(trigger.condition)
            if not program.evaluate_bool(bound(program.reads), Budget()):
                return None
        value = event.payload if trigger.input is None else rendered(trigger.input)
        labels = _labels(rendered(trigger.correlation_labels))
        return TriggerRequest(input={} if value is None else value, correlation_labels=labels)

    def _admit(self, tenant: str, event: Event, listener: _Listener, request: TriggerRequest, depth: int) -> str:
        seen: dict[str, JSON] = {name: value for name, value in view_of(event).items() if name != "payload"}
        cause = Cause(run_id=listener.run_id, event=seen, by=BY_EVENT)
        deeper = msgspec.structs.replace(request, depth=depth)
        return self._triggers.start(tenant, listener.definition_id, deeper, cause).run_id

    def _guarded(
        self,
        tenant: str,
        event: Event,
        listener: _Listener,
        refused: list[RefusedStart],
        work: Callable[[], T | None],
    ) -> T | None:
        """What `work` gives; None after a refusal, which is recorded."""
        errors: tuple[Violation, ...] = ()
        try:
            return work()
        except UnavailableError:
            raise
        except RefusedError as fault:
            code, message, errors = fault.violations[0].code, fault.message, fault.violations
        except ExpressionError as fault:
            code, message = fault.code, fault.message
        except Exception as fault:  # noqa: BLE001 - one definition must not keep an event from all others
            _log.exception("a run of %s could not be started by an event", listener.definition.family_slug)
            code, message = "INTERNAL", f"{type(fault).__name__}: {fault}"
        record = _record(event, listener, code, message, errors)
        self._records.record(tenant, record)
        refused.append(record)
        return None


def _record(event: Event, listener: _Listener, code: str, message: str, errors: tuple[Violation, ...]) -> RefusedStart:
    return RefusedStart(
        at=event.received_at,
        run_id=listener.run_id,
        family_slug=listener.definition.family_slug,
        definition_id=listener.definition_id,
        environment=listener.definition.environment,
        event_name=event.event_name,
        event_id=event.event_id,
        correlation_key=event.correlation_key,
        depth=event.depth,
        code=code,
        message=message,
        errors=errors,
    )


def _labels(value: JSON) -> tuple[Label, ...]:
    """Labels as a list of `{key, id}`, as triggers have them, or as an object of ids by key. Numbers become text."""
    if value is None:
        return ()
    entries = [{"key": key, "id": one} for key, one in value.items()] if isinstance(value, dict) else value
    if not isinstance(entries, list):
        raise _not_labels("correlation_labels")
    return tuple(_label(entry, f"correlation_labels[{place}]") for place, entry in enumerate(entries))


def _label(entry: JSON, field: str) -> Label:
    if not isinstance(entry, dict) or set(entry) != {"key", "id"} or not isinstance(entry["key"], str):
        raise _not_labels(field)
    label_id = entry["id"]
    if isinstance(label_id, bool) or not isinstance(label_id, str | int):
        raise invalid("LABEL_INVALID", "the id of a label is text or a whole number", f"{field}.id")
    return Label(entry["key"], str(label_id))


def _not_labels(field: str) -> RefusedError:
    return invalid("LABEL_INVALID", "labels are a list of {key, id}, or an object of ids by key", field)
