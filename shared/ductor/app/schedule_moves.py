"""What publications and archivals do to schedules, and telling the outside scheduler of it afterwards.

The row moves in the transaction of the publication, so no occurrence is fired by two versions or by none. The outside
scheduler only calls; what it was not told, because somebody died in between, the sweeper tells it.
"""

from __future__ import annotations

import logging
from typing import Final

import msgspec

from ductor.app.schedule_rows import (
    Overlap,
    PausedBy,
    Schedule,
    reaching,
    read_schedule,
    schedule_pk,
    schedule_put,
)
from ductor.model.definition import DefinitionRow
from ductor.model.json import JSON
from ductor.model.recurrence import ScheduleKey
from ductor.ports import CronSchedules, Put, Table
from ductor.schedules import next_after, read_spec, recurrence

MAX_OWED: Final = 100
"""Occurrences of a replaced timetable that may be owed at the moment of its replacement."""

TRIES: Final = 5
"""Lost races in a row before it is left to the sweeper."""

_log = logging.getLogger("ductor")


def key_of(row: DefinitionRow) -> ScheduleKey:
    """The schedule that a published version owns while it is the newest of its environment."""
    return ScheduleKey(row.tenant, row.family_slug, str(row.document.get("environment", "")))


class ScheduleMoves:
    """Writes for the transactions of definitions, and `settle` for afterwards. `outside` is None where this

    installation fires by itself.
    """

    def __init__(self, table: Table, outside: CronSchedules | None = None) -> None:
        self._table = table
        self._outside = outside

    def on_publish(self, row: DefinitionRow, now: int) -> tuple[Put, ...]:
        """The newest version owns the schedule from `now` (epoch ms) on. Nothing when there is and was none."""
        key, document = key_of(row), row.document.get("schedule")
        known = read_schedule(self._table, key)
        if known is None and not isinstance(document, dict):
            return ()
        before, version = known or (Schedule(key=key, reached=now), 0)
        after = self._untold(_moved(before, row, document if isinstance(document, dict) else None, now), now)
        return (schedule_put(after, version),)

    def on_archive(self, row: DefinitionRow, now: int) -> tuple[Put, ...]:
        """The schedule ends with the version that owns it. Nothing for an older version."""
        known = read_schedule(self._table, key_of(row))
        if known is None or known[0].definition_id != row.id:
            return ()
        return (schedule_put(self._untold(_ended(known[0], now), now), known[1]),)

    def settle(self, key: ScheduleKey) -> bool:
        """Make the outside scheduler call as the row says. Whether it does now; if not, the sweeper tries again."""
        known = read_schedule(self._table, key) if self._outside is not None else None
        if known is None or known[0].told:
            return True
        for _ in range(TRIES):
            schedule, version = known
            if not self._told(schedule):
                return False
            if self._table.write((schedule_put(msgspec.structs.replace(schedule, told=True), version),)) is None:
                return True
            # Somebody changed it meanwhile. What this call said may have come after what theirs said.
            known = read_schedule(self._table, key) or known
        return False

    def repair(self, key: ScheduleKey) -> None:
        """Tell the outside scheduler again what it should know already. A failure is only logged."""
        known = read_schedule(self._table, key)
        if known is not None:
            self._told(known[0])

    def untold(self, schedule: Schedule, now: int) -> Schedule:
        """The schedule, to be told to the outside scheduler by `settle`."""
        return self._untold(schedule, now)

    def _untold(self, schedule: Schedule, now: int) -> Schedule:
        return msgspec.structs.replace(schedule, told=self._outside is None, updated_at=now)

    def _told(self, schedule: Schedule) -> bool:
        try:
            self._tell(schedule)
        except Exception:  # noqa: BLE001 - it stays marked as untold, which the API shows and the sweeper repairs
            _log.exception("the outside scheduler does not know of %s yet", schedule_pk(schedule.key))
            return False
        return True

    def _tell(self, schedule: Schedule) -> None:
        if self._outside is None:
            return
        wanted = recurrence(schedule.spec, schedule.updated_at) if schedule.live and schedule.next_at else None
        if wanted is None:
            self._outside.remove(schedule.key)
        else:
            self._outside.put(schedule.key, wanted)


def _moved(before: Schedule, row: DefinitionRow, document: dict[str, JSON] | None, now: int) -> Schedule:
    """What the version makes of the schedule that was there.

    The same timetable goes on where it was. Another one begins now; what had come by the old one is still owed.
    """
    if document is None:
        return _ended(before, now)
    spec = read_spec(document)
    same = bool(before.definition_id) and before.spec == spec
    after = msgspec.structs.replace(
        before,
        definition_id=row.id,
        definition_version=row.version,
        spec=spec,
        overlap=_overlap(document.get("overlap_policy")),
        jitter_ms=_number(document.get("jitter_ms")),
        catch_up_ms=_number(document.get("catch_up_window_ms")),
        paused=_paused(before.paused, document.get("paused") is True),
        owed=before.owed if same else _owed(before, now),
    )
    if after.paused:
        return reaching(after, now)
    return reaching(after, 0) if same else _begun(after, now)


def _begun(schedule: Schedule, now: int) -> Schedule:
    """The new timetable counts from `now` on, after what is still owed."""
    return reaching(msgspec.structs.replace(schedule, reached=max(schedule.reached, now)), 0)


def _owed(before: Schedule, now: int) -> tuple[int, ...]:
    if not before.live:
        return ()
    found: list[int] = list(before.owed)
    at: int | None = before.next_at or None
    while at is not None and at <= now and len(found) < MAX_OWED:
        if at not in found:
            found.append(at)
        at = next_after(before.spec, at)
    return tuple(sorted(found))


def _ended(before: Schedule, now: int) -> Schedule:
    """No version owns it. What operators said of it is forgotten; what its last run does is not."""
    ended = msgspec.structs.replace(before, definition_id="", paused=PausedBy.NOBODY, owed=(), next_at=0)
    return msgspec.structs.replace(ended, reached=max(ended.reached, now))


def _paused(before: PausedBy, wanted: bool) -> PausedBy:
    if before is PausedBy.OPERATOR:
        return before
    return PausedBy.DOCUMENT if wanted else PausedBy.NOBODY


def _overlap(value: JSON) -> Overlap:
    """The validator accepts both spellings, and the document keeps the canonical one."""
    text = str(value).lower().removeprefix("overlap_policy_") if value else ""
    return Overlap.ALLOW_ALL if text == Overlap.ALLOW_ALL else Overlap.SKIP


def _number(value: JSON) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else 0
