"""`ductor.trigger` and `ductor.publish_event`: through the use cases, for the tenant of the running step alone.

What a step may start is what stands in its run's environment. What it starts is one deeper than its run (causation).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from ductor.actions import own
from ductor.actions.action import Action
from ductor.actions.context import ActionContext
from ductor.actions.errors import ActionError
from ductor.app.access import Caller, Scope
from ductor.app.admission import Label, TriggerRequest
from ductor.app.descent import readable
from ductor.app.events import MAX_EVENT_ID_CHARS, Events
from ductor.app.headers import HEAD, read_header, run_pk
from ductor.app.library import Library
from ductor.app.refusals import not_found
from ductor.app.trigger import Cause, Triggers
from ductor.model.errors import ErrorCode, RefusedError, clip, refuse
from ductor.model.json import JSON
from ductor.model.lineage import derived_run_id
from ductor.model.run import Origin
from ductor.model.waiting import Event
from ductor.ports import Table

BY_RUN: Final = "run:"
"""What the creator of such a run begins with; the id of the run that asked follows."""

_PASSING: Final = frozenset(
    {ErrorCode.ABORTED, ErrorCode.RESOURCE_EXHAUSTED, ErrorCode.UNAVAILABLE, ErrorCode.INTERNAL}
)


class OwnActions:
    """`actions.own.Installation` over the use cases of this installation."""

    def __init__(self, *, table: Table, library: Library, triggers: Triggers, events: Events) -> None:
        self._table = table
        self._library = library
        self._triggers = triggers
        self._events = events

    def actions(self) -> tuple[Action, ...]:
        """What a worker's registry is provided with."""
        return own.actions(self)

    def trigger(self, args: own.TriggerArgs, ctx: ActionContext) -> dict[str, JSON]:
        """Admit a run, once per idempotency key of the step: asked again, it is the run that is there.

        Refused with the codes of a trigger over HTTP, `ENVIRONMENT_NOT_WRITABLE` for a definition of another
        environment, and `CAUSATION_TOO_DEEP`.
        """
        run_id = derived_run_id("action", ctx.tenant, ctx.idempotency_key or f"{ctx.run_id}/{ctx.node}/{ctx.attempt}")
        try:
            before = self._table.get(run_pk(run_id), HEAD)
            # A version that was published meanwhile makes no second run of the same step.
            state = readable(before) if before is not None else None
            known = state.origin.definition_id if state is not None else ""
            origin = self._origin(ctx)
            definition_id = known or self._definition(args, origin)
            request = _request(args, origin, ctx)
            cause = Cause(run_id=run_id, by=f"{BY_RUN}{ctx.run_id}")
            done = self._triggers.start(ctx.tenant, definition_id, request, cause)
        except RefusedError as fault:
            raise _failed(fault) from None
        return {"run_id": done.run_id, "status": done.status.value, "definition_id": definition_id}

    def publish(self, args: own.PublishArgs, ctx: ActionContext) -> dict[str, JSON]:
        """Publish an event; its id is the step's key by default, so that a repetition within a day changes nothing."""
        event = Event(
            event_name=args.event_name,
            event_id=args.event_id or ctx.idempotency_key[-MAX_EVENT_ID_CHARS:],
            correlation_key=args.correlation_key,
            payload=args.payload,
            depth=ctx.causation_depth or 0,
        )
        caller = Caller(f"{BY_RUN}{ctx.run_id}", ctx.tenant, frozenset({Scope.EVENTS_PUBLISH}))
        try:
            done = self._events.publish(caller, event)
        except RefusedError as fault:
            raise _failed(fault) from None
        refused = [
            {"family_slug": one.family_slug, "code": one.code, "message": clip(one.message, 500)}
            for one in done.refused_starts
        ]
        return {
            "event_id": done.event_id,
            "matched": done.matched,
            "started_runs": list(done.started_runs),
            "refused_starts": refused,
        }

    def _origin(self, ctx: ActionContext) -> Origin:
        item = self._table.get(run_pk(ctx.run_id), HEAD)
        origin = read_header(item).origin if item is not None else None
        if origin is None or origin.tenant != ctx.tenant:
            raise not_found("RUN_NOT_FOUND", "the run of this step is no longer there", "run_id")
        return origin

    def _definition(self, args: own.TriggerArgs, origin: Origin) -> str:
        """The id of what is to be started. It must stand in the environment of the run that asks."""
        definition_id = args.definition_id
        if args.family_slug:
            family, _ = self._library.family(origin.tenant, args.family_slug)
            definition_id = family.newest_in.get(origin.environment, "")
            if not definition_id:
                where = f"the environment {origin.environment!r}"
                message = f"no version of {args.family_slug[:100]!r} is published in {where} of this run"
                raise not_found("DEFINITION_NOT_FOUND", message, "family_slug")
        environment = self._library.load(origin.tenant, definition_id)[1].environment
        if environment != origin.environment:
            message = f"the definition is of the environment {environment!r}; this run may start those of its own"
            raise refuse(ErrorCode.PERMISSION_DENIED, "ENVIRONMENT_NOT_WRITABLE", message, "definition_id")
        return definition_id


def _request(args: own.TriggerArgs, origin: Origin, ctx: ActionContext) -> TriggerRequest:
    labels: Mapping[str, str] = {**dict(origin.labels), **args.correlation_labels}
    return TriggerRequest(
        input=args.input,
        subject_type=args.subject_type,
        subject_id=args.subject_id,
        correlation_labels=tuple(Label(key, one) for key, one in labels.items()),
        variables=args.variables,
        depth=(ctx.causation_depth or 0) + 1,
    )


def _failed(fault: RefusedError) -> ActionError:
    """A refusal as the error of an attempt, under the code of its first violation."""
    first = fault.violations[0]
    message = first.message if len(fault.violations) == 1 else fault.message
    details = [msgspec.to_builtins(one) for one in fault.violations[:20]]
    return ActionError(first.code, message, fault.error_code in _PASSING, details)
