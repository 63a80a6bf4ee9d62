"""Publishing events."""

from __future__ import annotations

from ductor.api.call import Call
from ductor.api.models.events import PublishEventAnswer, PublishEventBody
from ductor.api.routing import Route
from ductor.app.access import Scope
from ductor.app.events import Events
from ductor.model.waiting import Event


class EventRoutes:
    """`/api/v2/workflow-events:publish`."""

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
        )

    def _publish(self, call: Call) -> PublishEventAnswer:
        body = call.body(PublishEventBody)
        event = Event(
            event_name=body.event_name,
            event_id=body.event_id,
            correlation_key=body.correlation_key,
            payload=body.payload,
        )
        done = self._events.publish(call.caller, event)
        return PublishEventAnswer(
            event_id=done.event_id,
            matched=done.matched,
            started_runs=list(done.started_runs),
            metadata=call.metadata(),
        )
