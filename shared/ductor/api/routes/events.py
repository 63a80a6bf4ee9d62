"""Publishing events, and what they could not start."""

from __future__ import annotations

from ductor.api.call import Call
from ductor.api.models.events import (
    PublishEventAnswer,
    PublishEventBody,
    RefusedStartModel,
    RefusedStartsAnswer,
)
from ductor.api.models.runs import PAGE_PARAMETERS
from ductor.api.routing import Route
from ductor.app.access import Scope
from ductor.app.events import Events
from ductor.model.waiting import Event


class EventRoutes:
    """`/api/v2/workflow-events:publish` and `/api/v2/workflow-events/refused-starts`."""

    def __init__(self, events: Events) -> None:
        self._events = events

    def routes(self) -> tuple[Route, ...]:
        return (
            Route(
                "POST",
                "/api/v2/workflow-events:publish",
                "Publish an event",
                self._publish,
                PublishEventAnswer,
                PublishEventBody,
                scope=Scope.EVENTS_PUBLISH.value,
                status=202,
            ),
            Route(
                "GET",
                "/api/v2/workflow-events/refused-starts",
                "Starts by events that were refused",
                self._refused,
                RefusedStartsAnswer,
                query=PAGE_PARAMETERS,
                scope=Scope.WORKFLOW_READ.value,
            ),
        )

    def _publish(self, call: Call) -> PublishEventAnswer:
        body = call.body(PublishEventBody)
        event = Event(
            event_name=body.event_name,
            event_id=body.event_id,
            correlation_key=body.correlation_key,
            payload=body.payload,
            depth=call.depth or 0,
        )
        done = self._events.publish(call.caller, event)
        return PublishEventAnswer(
            event_id=done.event_id,
            matched=done.matched,
            started_runs=list(done.started_runs),
            refused_starts=[RefusedStartModel.model_validate(one) for one in done.refused_starts],
            metadata=call.metadata(),
        )

    def _refused(self, call: Call) -> RefusedStartsAnswer:
        query = call.query(*PAGE_PARAMETERS)
        page = self._events.refused_starts(call.caller, query.integer("limit"), query.text("cursor"))
        items = [RefusedStartModel.model_validate(one) for one in page.items]
        return RefusedStartsAnswer(items=items, next_cursor=page.next_cursor, metadata=call.metadata())
