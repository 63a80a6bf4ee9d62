"""Which runs a list is about: reading the filters of a request, and testing a run against them. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Final

import msgspec

from ductor.app.refusals import invalid
from ductor.app.run_index import alike, by_schedule, value_text
from ductor.model.enums import RunStatus
from ductor.model.run import Origin, RunState, effective_status

ACTIVE: Final = tuple(status for status in RunStatus if not status.terminal)
LABEL_PREFIX: Final = "label."
ATTRIBUTE_PREFIX: Final = "attr."
_LABEL_ATTRIBUTE: Final = "attr.ductor.correlation."
_NONE: Final = object()
_RELATIVE: Final = re.compile(r"-(\d{1,9})(ms|s|m|h|d)")
_UNITS: Final = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_TEXTS: Final = (
    "workflow_type",
    "schedule",
    "q",
    "environment",
    "definition_id",
    "subject_type",
    "subject_id",
    "root_run_id",
    "parent_run_id",
    "journey_id",
)
_SAME: Final = _TEXTS[3:]
_MAX_TEXT: Final = 256
_MAX_EPOCH_MS: Final = 9_999_999_999_999


class RunFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Filters of a list of runs; empty means any. `workflow_type` is a family slug in which `-` and `_` are alike.

    `schedule` is the slug of the family whose schedule started the run. `q` is a part, in any case, of the run's id,
    its family, its subject's id or one of its labels' ids. `attributes` are visibility attributes, as
    `run_index.value_text` spells them. `started_after` (inclusive) and `started_before` (exclusive) are epoch ms, 0 =
    no limit; they look at the time of admission.
    """

    workflow_type: str = ""
    status: RunStatus | None = None
    active_only: bool = False
    started_after: int = 0
    started_before: int = 0
    subject_type: str = ""
    subject_id: str = ""
    labels: tuple[tuple[str, str], ...] = ()
    attributes: tuple[tuple[str, str], ...] = ()
    root_run_id: str = ""
    parent_run_id: str = ""
    journey_id: str = ""
    environment: str = ""
    definition_id: str = ""
    schedule: str = ""
    q: str = ""


def read_filter(query: Iterable[tuple[str, str]], now: int, under: str = "") -> RunFilter:
    """The filter in a query string's (name, value) pairs; `limit` and `cursor` are passed over.

    Times are RFC 3339 or relative to `now` (epoch ms), like `-1h`. Refuses unknown names and values; `under` stands
    before the names in its refusals.
    """
    fields: dict[str, object] = {}
    labels: list[tuple[str, str]] = []
    attributes: list[tuple[str, str]] = []
    for name, value in query:
        at = f"{under}{name}"
        if name in fields:
            raise invalid("FIELD_INVALID", "give this parameter once", at)
        if len(value) > _MAX_TEXT:
            raise invalid("FIELD_INVALID", f"at most {_MAX_TEXT} characters", at)
        label = _label_key(name)
        if label:
            labels.append((label, value))
        elif name.startswith(ATTRIBUTE_PREFIX) and name != ATTRIBUTE_PREFIX:
            attributes.append((name.removeprefix(ATTRIBUTE_PREFIX), value))
        elif name in _TEXTS:
            fields[name] = value
        elif name == "status":
            fields[name] = _status(value, at)
        elif name == "active_only":
            fields[name] = _flag(value, at)
        elif name in ("started_after", "started_before"):
            fields[name] = read_time(value, now, at)
        elif name not in ("limit", "cursor"):
            raise invalid("FIELD_UNKNOWN", "runs cannot be filtered by this", at)
    found = {**fields, "labels": tuple(sorted(labels)), "attributes": tuple(sorted(attributes))}
    return msgspec.convert(found, RunFilter)


def read_time(text: str, now: int, field: str) -> int:
    """Epoch ms of an RFC 3339 time, or of a distance back from `now`: `-90s`, `-5m`, `-1h`, `-7d`."""
    relative = _RELATIVE.fullmatch(text)
    if relative:
        return max(1, now - int(relative[1]) * _UNITS[relative[2]])
    try:
        moment = datetime.fromisoformat(text)
        at = int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)
    except (ValueError, OverflowError) as error:
        raise invalid("FIELD_INVALID", "send a time like 2026-07-11T11:10:00Z, or -1h", field) from error
    return min(max(1, at), _MAX_EPOCH_MS)


def matches(wanted: RunFilter, state: RunState) -> bool:
    """Whether a run is what the filter is about."""
    origin, status = state.origin, effective_status(state)
    if wanted.status is not None and status is not wanted.status:
        return False
    if wanted.active_only and status.terminal:
        return False
    if wanted.workflow_type and alike(wanted.workflow_type) != alike(origin.family_slug):
        return False
    if wanted.schedule and not (by_schedule(origin) and alike(wanted.schedule) == alike(origin.family_slug)):
        return False
    if not all(getattr(wanted, name) in ("", getattr(origin, name)) for name in _SAME):
        return False
    if wanted.q and not _contains(wanted.q.lower(), origin):
        return False
    shown = ((name, state.attributes.get(name, _NONE), value) for name, value in wanted.attributes)
    if not all(has is not _NONE and value_text(has) == value for _, has, value in shown):
        return False
    return set(wanted.labels) <= set(origin.labels)


def _contains(part: str, origin: Origin) -> bool:
    texts = (origin.run_id, origin.family_slug, origin.subject_id, *(value for _, value in origin.labels))
    return any(part in text.lower() for text in texts)


def _label_key(name: str) -> str:
    for prefix in (LABEL_PREFIX, _LABEL_ATTRIBUTE):
        if name.startswith(prefix):
            return name.removeprefix(prefix)
    return ""


def _status(value: str, field: str) -> RunStatus:
    try:
        return RunStatus(value.lower())
    except ValueError as error:
        raise invalid("FIELD_INVALID", f"status is one of {', '.join(RunStatus)}", field) from error


def _flag(value: str, field: str) -> bool:
    if value.lower() not in ("true", "false", "1", "0"):
        raise invalid("FIELD_INVALID", "active_only is true or false", field)
    return value.lower() in ("true", "1")
