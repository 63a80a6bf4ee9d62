"""Schedules as rows: what the newest version of a family fires in one environment, and how far it has come.

`S#<tenant>#<family>#<environment>` holds the row `SPEC`, one row per occurrence that was decided (`OCC#<instant>`), one
per operator's request (`REQ#<id>`) and one per backfill (`BF#<id>`). The row alone decides what fires: it changes in
the transactions of publications, archivals, controls and occurrences, each upon the version that it has seen.
"""

from __future__ import annotations

import hashlib
import zlib
from enum import StrEnum
from typing import Final

import msgspec

from ductor.app.headers import sort_time
from ductor.model.recurrence import ScheduleKey
from ductor.ports import Expect, Index, Item, Put, Table
from ductor.schedules import Spec, next_after

SPEC: Final = "SPEC"
OCCURRENCE_PREFIX: Final = "OCC#"
BACKFILL_PREFIX: Final = "BF#"
DUE_SHARDS: Final = 8
UNTOLD: Final = "SU"
"""Partition of index `i2`: the schedules of which the outside scheduler does not know yet."""

KEPT_S: Final = 400 * 24 * 3600
"""How long occurrences, requests and backfills are shown. Which runs they started stays known by the runs' ids."""


class Overlap(StrEnum):
    """What becomes of an occurrence while a run of the schedule is active (durable runs: Scheduled workflows)."""

    SKIP = "skip"
    ALLOW_ALL = "allow_all"


class PausedBy(StrEnum):
    """Who paused a schedule; a publication takes back only what a document said."""

    NOBODY = ""
    DOCUMENT = "document"
    OPERATOR = "operator"


class Decided(StrEnum):
    """What became of an occurrence."""

    FIRED = "fired"
    SKIPPED = "skipped"
    MISSED = "missed"
    REFUSED = "refused"


class Occurrence(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An occurrence that was decided; all times are epoch ms. `scheduled_at` is when the timetable has it.

    `by` is empty for the timetable itself, else the request that started it. A missed one may stand for `count`
    occurrences, the last of them at or before `until`. `run_id` of a skipped one is the run that was active.
    """

    scheduled_at: int
    outcome: Decided
    decided_at: int
    run_id: str = ""
    definition_version: int = 0
    by: str = ""
    count: int = 1
    until: int = 0
    code: str = ""
    message: str = ""


class Schedule(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Body of the row `SPEC`. Times are epoch ms.

    Every occurrence up to and including `reached` is decided, but for `owed`: instants of an earlier version's
    timetable that had come and were not decided when it was replaced. `definition_id` is empty when the newest version
    has no schedule or is archived. `told` says whether the outside scheduler, if there is one, calls as it should.
    """

    key: ScheduleKey
    definition_id: str = ""
    definition_version: int = 0
    spec: Spec = Spec()
    overlap: Overlap = Overlap.SKIP
    jitter_ms: int = 0
    catch_up_ms: int = 0
    paused: PausedBy = PausedBy.NOBODY
    reached: int = 0
    owed: tuple[int, ...] = ()
    next_at: int = 0
    active_run: str = ""
    fired: int = 0
    skipped: int = 0
    missed: int = 0
    refused: int = 0
    last: Occurrence | None = None
    told: bool = True
    updated_at: int = 0

    @property
    def live(self) -> bool:
        """Whether it fires: neither gone nor paused."""
        return bool(self.definition_id) and not self.paused

    @property
    def due_at(self) -> int:
        """When the next occurrence is to be fired, its jitter included; 0 when there is none."""
        return self.next_at + jitter(self, self.next_at) if self.live and self.next_at else 0


def jitter(schedule: Schedule, instant: int) -> int:
    """How long after its instant an occurrence fires, in ms: the same at every look, and before the next occurrence."""
    if not schedule.jitter_ms:
        return 0
    following = next_after(schedule.spec, instant)
    most = schedule.jitter_ms if following is None else min(schedule.jitter_ms, following - instant - 1)
    key = schedule.key
    text = f"{key.tenant}/{key.family_slug}/{key.environment}/{instant}"
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8]) % (most + 1)


def reaching(schedule: Schedule, instant: int) -> Schedule:
    """The schedule with every occurrence up to `instant` decided."""
    owed = tuple(one for one in schedule.owed if one > instant)
    reached = max(schedule.reached, instant)
    if owed:
        next_at = owed[0]
    else:
        next_at = (next_after(schedule.spec, reached) or 0) if schedule.definition_id else 0
    return msgspec.structs.replace(schedule, reached=reached, owed=owed, next_at=next_at)


def schedule_pk(key: ScheduleKey) -> str:
    return f"S#{key.tenant}#{key.family_slug}#{key.environment}"


def list_pk(tenant: str) -> str:
    """Partition of index `i1`: the schedules of a tenant."""
    return f"SL#{tenant}"


def due_pk(number: int) -> str:
    """Partition of index `i3`: schedules by when they must be looked at."""
    return f"SD#{number}"


def read_key(pk: str) -> ScheduleKey:
    """The key in a partition key."""
    _, tenant, family_slug, environment = pk.split("#")
    return ScheduleKey(tenant, family_slug, environment)


def schedule_put(schedule: Schedule, version: int) -> Put:
    """The write of the row upon its version `version`; 0 for a row that is not there yet."""
    key = schedule.key
    place = f"{key.tenant}#{key.family_slug}#{key.environment}"
    due = (due_pk(zlib.crc32(place.encode()) % DUE_SHARDS), f"{sort_time(schedule.due_at)}#{place}")
    item = Item(
        pk=schedule_pk(key),
        sk=SPEC,
        version=version + 1,
        body=_encode(schedule),
        i1=(list_pk(key.tenant), f"{key.family_slug}#{key.environment}") if schedule.definition_id else None,
        i2=None if schedule.told else (UNTOLD, place),
        i3=due if schedule.due_at else None,
    )
    return Put(item, version or Expect.ABSENT)


def read_schedule(table: Table, key: ScheduleKey) -> tuple[Schedule, int] | None:
    """The row and its version."""
    item = table.get(schedule_pk(key), SPEC)
    return (decode_schedule(item), item.version) if item is not None else None


def decode_schedule(item: Item) -> Schedule:
    return _decode(item.body)


def due_keys(table: Table, until: int, limit: int) -> list[ScheduleKey]:
    """Schedules whose next occurrence is due by `until` (epoch ms), at most `limit` of each shard, the oldest first."""
    found: list[tuple[str, ScheduleKey]] = []
    for number in range(DUE_SHARDS):
        page = table.query(due_pk(number), high=f"{sort_time(until)}#~", index=Index.I3, limit=limit)
        found.extend((item.i3[1], read_key(item.pk)) for item in page.items if item.i3 is not None)
    return [key for _, key in sorted(found, key=lambda one: one[0])]


def next_due(table: Table) -> int | None:
    """When the earliest of all schedules is due (epoch ms), None when none ever is."""
    found: list[int] = []
    for number in range(DUE_SHARDS):
        page = table.query(due_pk(number), index=Index.I3, limit=1)
        found.extend(int(item.i3[1].split("#", 1)[0]) for item in page.items if item.i3 is not None)
    return min(found, default=None)


def occurrence_sk(instant: int, by: str = "") -> str:
    """Sort key of an occurrence. One that somebody asked for never takes the place of the timetable's."""
    return f"{OCCURRENCE_PREFIX}{sort_time(instant)}" + (
        f"#{hashlib.sha256(by.encode()).hexdigest()[:16]}" if by else ""
    )


def occurrence_put(key: ScheduleKey, sk: str, occurrence: Occurrence, version: int = 0) -> Put:
    """The write of an occurrence upon its version `version`; 0 for one that is not decided yet."""
    ttl = occurrence.decided_at // 1000 + KEPT_S
    item = Item(pk=schedule_pk(key), sk=sk, version=version + 1, body=_encode(occurrence), ttl=ttl)
    return Put(item, version or Expect.ABSENT)


def decode_occurrence(item: Item) -> Occurrence:
    return _decode_occurrence(item.body)


_encode: Final = msgspec.json.Encoder().encode
_decode: Final = msgspec.json.Decoder(Schedule).decode
_decode_occurrence: Final = msgspec.json.Decoder(Occurrence).decode
