"""An event of the bus on Lambda: whose it is and what it says. From there on it is an event like any other."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Protocol

import msgspec

from ductor.app.events import Events, Published, check_event
from ductor.lambdas.telemetry import Telemetry
from ductor.model.causation import DEPTH_RESOURCE, EVENT_RESOURCE, MAX_DEPTH, RUN_EVENT
from ductor.model.errors import RefusedError
from ductor.model.json import JSON, encode
from ductor.model.waiting import Event
from ductor.ports import Outgoing, UnavailableError

ANY: Final = "*"
_FIELDS: Final = frozenset({"event_id", "correlation_key", "causation_depth", "payload"})


class NotOursError(Exception):
    """An event that no tenant gets: `code` and the message say why."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class DeadLetters(Protocol):
    """Where events go that can never be delivered."""

    def send(self, messages: Sequence[Outgoing]) -> tuple[int, ...]: ...


class Sources:
    """Which tenant the events of a source belong to.

    Written as `source=tenant` with commas between, the first that fits counts. A source may end in `.*`, or be `*` for
    any; the tenant `*` is the one that an entry `<prefix><tenant id>` of the event's `resources` names.
    """

    def __init__(self, text: str, prefix: str) -> None:
        """Raises ValueError for a text that is no such list."""
        self._prefix = prefix
        self._rules = [_rule(part) for part in text.split(",") if part.strip()]

    def tenant_of(self, source: str, resources: Sequence[str]) -> str:
        """The tenant. Raises NotOursError when the source has none, or when the event names another one or several."""
        rule = next((tenant for pattern, tenant in self._rules if _fits(pattern, source)), None)
        if rule is None:
            raise NotOursError("SOURCE_UNKNOWN", f"no tenant takes events of the source {source!r}")
        named = {one.removeprefix(self._prefix) for one in resources if one.startswith(self._prefix)}
        if len(named | ({rule} - {ANY})) != 1:
            wanted = "one tenant" if rule == ANY else f"no other tenant than {rule}"
            message = f"resources must name {wanted}, as {self._prefix}<tenant id>"
            raise NotOursError("TENANT_UNCLEAR", message)
        return named.pop() if rule == ANY else rule


class BusEvents:
    """Handles one event per invocation, as EventBridge calls it.

    What can never be delivered goes to the dead letters with the reason. An outage is raised: Lambda tries again, and
    in the end moves the event there itself.
    """

    def __init__(
        self,
        *,
        events: Events,
        exists: Callable[[str], bool],
        sources: Sources,
        own_source: str,
        dead: DeadLetters,
        telemetry: Telemetry,
    ) -> None:
        self._events = events
        self._exists = exists
        self._sources = sources
        self._own_source = own_source
        self._dead = dead
        self._telemetry = telemetry

    def handle(self, raw: Mapping[str, Any]) -> dict[str, Any]:
        """What became of the event. Raises UnavailableError."""
        try:
            done = self._deliver(raw)
        except NotOursError as fault:
            return self._refuse(raw, fault.code, str(fault))
        except RefusedError as fault:
            return self._refuse(raw, fault.violations[0].code, fault.message)
        finally:
            self._telemetry.flush()
        self._telemetry.count("EventsDelivered", 1)
        self._telemetry.count("StartsRefused", len(done.refused_starts))
        for one in done.refused_starts:
            self._telemetry.log.warning("event %s started no run of %s: %s", one.event_id, one.family_slug, one.code)
        self._telemetry.flush()
        return {"matched": done.matched, "started_runs": list(done.started_runs)}

    def _deliver(self, raw: Mapping[str, Any]) -> Published:
        source = str(raw.get("source", ""))
        tenant = self._sources.tenant_of(source, [str(one) for one in raw.get("resources") or ()])
        if not self._exists(tenant):
            raise NotOursError("TENANT_UNKNOWN", f"there is no tenant {tenant!r}")
        event = read_event(raw)
        if source == self._own_source and event.event_name.startswith(RUN_EVENT):
            return self._events.hear(tenant, event)
        check_event(event)
        return self._events.accept(tenant, event)

    def _refuse(self, raw: Mapping[str, Any], code: str, message: str) -> dict[str, Any]:
        self._telemetry.log.error("an event of the bus is refused: %s", message, extra={"code": code})
        self._telemetry.count("EventsRefused", 1)
        self._telemetry.flush()
        body = encode({"reason": f"{code}: {message}", "event": dict(raw)})
        if self._dead.send([Outgoing(body)]):
            raise UnavailableError("the dead letters did not take a refused event")
        return {"refused": code}


def read_event(raw: Mapping[str, Any]) -> Event:
    """The event in an event of the bus.

    `detail-type` is its name, `id` its id unless the detail has an `event_id` of the producer's. A detail that has
    none of our fields is the payload itself, as services of AWS send it. Raises NotOursError.
    """
    detail = raw.get("detail")
    if not isinstance(detail, dict):
        raise NotOursError("DETAIL_INVALID", "the detail must be an object")
    ours = detail if detail.keys() & {"payload", "correlation_key"} and detail.keys() <= _FIELDS else {}
    payload: JSON = ours.get("payload") if ours else detail
    depth = ours.get("causation_depth", _depth_beside(raw))
    if not isinstance(depth, int) or isinstance(depth, bool) or not 0 <= depth <= 2 * MAX_DEPTH:
        raise NotOursError("DETAIL_INVALID", f"causation_depth must be a whole number from 0 to {2 * MAX_DEPTH}")
    texts = {
        "event_name": raw.get("detail-type"),
        "event_id": ours.get("event_id") or _beside(raw, EVENT_RESOURCE) or raw.get("id"),
        "correlation_key": ours.get("correlation_key") or "",
    }
    for name, text in texts.items():
        if not isinstance(text, str):
            raise NotOursError("DETAIL_INVALID", f"{name} must be text")
    return msgspec.convert({**texts, "payload": payload, "depth": depth}, Event)


def _beside(raw: Mapping[str, Any], prefix: str) -> str:
    """What one of our own actions put beside a detail that is not ours to change."""
    texts = (str(one) for one in raw.get("resources") or ())
    return next((text.removeprefix(prefix) for text in texts if text.startswith(prefix)), "")


def _depth_beside(raw: Mapping[str, Any]) -> JSON:
    text = _beside(raw, DEPTH_RESOURCE)
    return int(text) if text.isascii() and text.isdigit() and len(text) <= MAX_DEPTH else text or 0


def _rule(part: str) -> tuple[str, str]:
    source, mark, tenant = (text.strip() for text in part.partition("="))
    if not source or not mark or not tenant:
        raise ValueError(f"write source=tenant, not {part.strip()!r}")
    return source, tenant


def _fits(pattern: str, source: str) -> bool:
    return pattern in (ANY, source) or (pattern.endswith(".*") and source.startswith(pattern[:-1]))
