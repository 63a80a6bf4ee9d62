"""The run header as a table row: its keys, its index entries, and back. Knows no rule of the engine."""

from __future__ import annotations

import zlib
from typing import Final

import msgspec

from ductor.model.enums import RunStatus
from ductor.model.run import Origin, RunState, effective_status
from ductor.ports import Item

SHARDS: Final = 8
"""Index partitions per (tenant, status): one hot partition would throttle a whole DynamoDB index."""

HEAD: Final = "HEAD"
STALL: Final = "STALL"
HISTORY_PREFIX: Final = "T#"

_STARTING: Final = "STARTING#"
_STALLED: Final = "STALLED#"
_EXPIRING: Final = "EXPIRING#"
_UNBORN: Final = "UNBORN#"
_REMOVED: Final = "REMOVED#"
_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(RunState)


class Stall(msgspec.Struct, frozen=True):
    """Why the coordinator cannot advance a run, and since when (epoch ms): the body of row `STALL`."""

    reason: str
    since: int


def run_pk(run_id: str) -> str:
    """Partition of everything that belongs to a run."""
    return f"R#{run_id}"


def shard(run_id: str) -> int:
    return zlib.crc32(run_id.encode()) % SHARDS


def sort_time(at: int) -> str:
    """Epoch milliseconds as text that sorts by time until the year 2286."""
    return f"{at:013d}"


def history_sk(seq: int) -> str:
    """Sort key of the history row whose first transition has number `seq`."""
    return f"{HISTORY_PREFIX}{seq:010d}"


def request_sk(request_id: str) -> str:
    """Sort key of the outcome of an operator's request."""
    return f"REQ#{request_id}"


def status_pk(tenant: str, status: RunStatus, number: int) -> str:
    """Partition of index `i1`: the runs of a tenant in one status, but for those that `listed_status` leaves out."""
    return f"RS#{tenant}#{status.value}#{number}"


def tenant_pk(tenant: str, number: int) -> str:
    """Partition of index `i2`: all runs of a tenant."""
    return f"RT#{tenant}#{number}"


def wake_pk(number: int) -> str:
    """Partition of index `i3`: runs that have begun, by when they must be looked at."""
    return f"WAKE#{number}"


def starting_pk(number: int) -> str:
    """Partition of index `i3`: runs of all tenants before their first tick, by when they were admitted."""
    return f"{_STARTING}{number}"


def starting_sort(item: Item, tenant: str) -> str | None:
    """Where lists have a run that stands in `starting_pk`, None for one of another tenant."""
    sort, _, whose = item.i3[1].rpartition("#") if item.i3 is not None else ("", "", "")
    return sort if whose == tenant else None


def stalled_pk(number: int) -> str:
    """Partition of index `i3`: runs that cannot advance, by since when."""
    return f"{_STALLED}{number}"


def is_starting(state: RunState) -> bool:
    """Whether the run waits for its first tick. Until then one entry finds it for lists by status and for its wake-up.

    A run that ends in its first tick comes and goes in one index instead of two: on DynamoDB that is three write units.
    """
    return state.version == 1 and state.status is RunStatus.PENDING and bool(state.wake_at)


def listed_status(state: RunState) -> RunStatus | None:
    """The status that a run which has begun is listed under; None when it stands among all runs of its tenant only.

    Nearly all runs that have ended are completed, so those are found there.
    """
    status = effective_status(state)
    return None if status is RunStatus.COMPLETED else status


def header_item(state: RunState) -> Item:
    """The row `R#<run>`/`HEAD`. `i3` is present while a wake-up is armed."""
    origin = state.origin
    number = shard(origin.run_id)
    sort = f"{sort_time(origin.created_at)}#{origin.run_id}"
    starting = is_starting(state)
    status = None if starting else listed_status(state)
    look = (wake_pk(number), f"{sort_time(state.wake_at)}#{origin.run_id}") if state.wake_at else None
    return Item(
        pk=run_pk(origin.run_id),
        sk=HEAD,
        version=state.version,
        body=_encoder.encode(msgspec.structs.replace(state, loaded={}) if state.loaded else state),
        i1=None if status is None else (status_pk(origin.tenant, status, number), sort),
        i2=(tenant_pk(origin.tenant, number), sort),
        i3=(starting_pk(number), f"{sort}#{origin.tenant}") if starting else look,
    )


def read_header(item: Item) -> RunState:
    """The state in a header row. Raises msgspec.DecodeError or ValidationError for a row this release cannot read."""
    return _decoder.decode(item.body)


class _OriginOnly(msgspec.Struct):
    """The part of a header that no release changes."""

    origin: Origin


_origin_decoder = msgspec.json.Decoder(_OriginOnly)


def read_what_is_readable(item: Item) -> RunState | None:
    """For readers: the state or, when this release cannot read it, just whose run it is and its listed status.

    None when not even that can be read.
    """
    try:
        return read_header(item)
    except (msgspec.DecodeError, msgspec.ValidationError):
        pass
    try:
        origin = _origin_decoder.decode(item.body).origin
        status = listed_as(item)
    except (msgspec.DecodeError, msgspec.ValidationError, ValueError, IndexError):
        return None
    return RunState(origin=origin, status=status, version=item.version)


def listed_as(item: Item) -> RunStatus:
    """The status that the entries of a header row tell."""
    if item.i1 is not None:
        return RunStatus(item.i1[0].split("#")[2])
    return RunStatus.PENDING if awaits_start(item) else RunStatus.COMPLETED


def awaits_start(item: Item) -> bool:
    """Whether a header row is that of a run before its first tick."""
    return item.i3 is not None and item.i3[0].startswith(_STARTING)


def mark_stalled(item: Item, since: int) -> Item:
    """The same header row, listed as stalled instead of by its wake-up. Works without reading the body."""
    run_id = item.pk.removeprefix("R#")
    number, i1 = shard(run_id), item.i1
    if item.i2 is not None and awaits_start(item):
        i1 = status_pk(tenant_of(item), RunStatus.PENDING, number), item.i2[1]
    return msgspec.structs.replace(item, i1=i1, i3=(stalled_pk(number), f"{sort_time(since)}#{run_id}"))


def is_stalled(item: Item) -> bool:
    """Whether a header row carries the stalled marker."""
    return item.i3 is not None and item.i3[0].startswith(_STALLED)


def expiring_pk(number: int) -> str:
    """Partition of index `i3`: runs that are being removed."""
    return f"{_EXPIRING}{number}"


def mark_expiring(item: Item, now: int) -> Item:
    """The next version of a header row whose run counts as gone: in no list, nobody's, and closed to intents."""
    run_id = item.pk.removeprefix("R#")
    i3 = (expiring_pk(shard(run_id)), f"{sort_time(now)}#{run_id}")
    return msgspec.structs.replace(item, version=item.version + 1, i1=None, i2=None, i3=i3)


def unborn_pk(number: int) -> str:
    """Partition of index `i3`: runs whose values are being stored, by when that began."""
    return f"{_UNBORN}{number}"


def unborn_item(state: RunState, now: int) -> Item:
    """The run counts as not there. Only the first real header may follow, or its removal.

    The row's version is the moment, so that one that is begun anew, after a removal, is not taken for the one before.
    That of the state in it is 0, which no run has that was ever there.
    """
    i3 = (unborn_pk(shard(state.run_id)), f"{sort_time(now)}#{state.run_id}")
    never = header_item(msgspec.structs.replace(state, version=0))
    return msgspec.structs.replace(never, version=now, i1=None, i2=None, i3=i3)


def removed_pk(number: int) -> str:
    """Partition of index `i3`: runs that never were, of which only the header is left, by since when."""
    return f"{_REMOVED}{number}"


def mark_removed(item: Item, now: int) -> Item:
    """The next version of the header row of a run that never was: nothing else is left, and nothing is removed."""
    run_id = item.pk.removeprefix("R#")
    i3 = (removed_pk(shard(run_id)), f"{sort_time(now)}#{run_id}")
    return msgspec.structs.replace(item, version=item.version + 1, i3=i3)


def is_unborn(item: Item) -> bool:
    """Whether a header row says that its run is still being made."""
    return item.i3 is not None and item.i3[0].startswith(_UNBORN)


def is_expiring(item: Item) -> bool:
    """Whether a header row is of no run that is there: of one to be removed, or of one that is still being made."""
    return item.i3 is not None and item.i3[0].startswith((_EXPIRING, _UNBORN, _REMOVED))


def tenant_of(item: Item) -> str:
    """Whose run a header row is, also when its body cannot be read: its list entry says so."""
    return item.i2[0].split("#")[1] if item.i2 else ""
