"""The only doors to the outside: storage, queues, timers, time and identity, as the use cases see them.

A port says what every implementation must do; `tests/contract` holds one suite per port, run against each of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from enum import StrEnum
from typing import Final, Protocol

import msgspec

from ductor.model.recurrence import Recurrence, ScheduleKey
from ductor.model.waiting import Event


class Item(msgspec.Struct, frozen=True, kw_only=True):
    """One stored row. `body` is opaque to the table; `version` is what conditions compare.

    `ttl` is epoch seconds after which the row may vanish; readers filter expired rows themselves.
    `i1`..`i3` are optional (partition, sort) pairs of three sparse secondary indexes.
    """

    pk: str
    sk: str
    version: int = 1
    body: bytes = b"{}"
    ttl: int | None = None
    i1: tuple[str, str] | None = None
    i2: tuple[str, str] | None = None
    i3: tuple[str, str] | None = None


class Expect(StrEnum):
    """What a write demands of the stored row, besides an exact version (an `int`)."""

    ANY = "any"
    ABSENT = "absent"
    PRESENT = "present"


Condition = Expect | int


class Put(msgspec.Struct, frozen=True):
    """Write the whole row if `expect` holds for what is stored now."""

    item: Item
    expect: Condition = Expect.ANY


class Delete(msgspec.Struct, frozen=True):
    """Remove the row if `expect` holds. Deleting an absent row under `ANY` succeeds."""

    pk: str
    sk: str
    expect: Condition = Expect.ANY


class Check(msgspec.Struct, frozen=True):
    """Write nothing, but refuse the whole write unless `expect` holds for this row."""

    pk: str
    sk: str
    expect: Condition = Expect.PRESENT


Op = Put | Delete | Check

MAX_OPS_PER_WRITE: Final = 100
"""DynamoDB's limit of items in one transaction; every implementation refuses more with ValueError."""

MAX_ITEM_BYTES: Final = 400_000
"""DynamoDB's item limit; every implementation raises `ItemTooLargeError` above it."""


class ItemTooLargeError(ValueError):
    """A row is over `MAX_ITEM_BYTES`. Nothing of the write was stored."""


class SecretLostError(RuntimeError):
    """A secret is there and can never be opened again: what it was sealed with is gone or another."""


class UnavailableError(RuntimeError):
    """The other side could not be reached or throttled us for too long. The write may or may not have happened."""


class Conflict(msgspec.Struct, frozen=True):
    """A lost condition: the index of the first op that failed and the row that stood in its way (None if absent)."""

    index: int
    current: Item | None


class Page(msgspec.Struct, frozen=True):
    """One page of a query; `cursor` is opaque and None on the last page."""

    items: tuple[Item, ...]
    cursor: str | None = None


class Index(StrEnum):
    """The three sparse secondary indexes. They are eventually consistent on AWS."""

    I1 = "i1"
    I2 = "i2"
    I3 = "i3"


class Table(Protocol):
    """Rows under (pk, sk) with conditional, all-or-nothing writes. Reads of the table itself are consistent."""

    def get(self, pk: str, sk: str) -> Item | None: ...

    def batch_get(self, keys: Sequence[tuple[str, str]]) -> dict[tuple[str, str], Item]:
        """The rows that exist, by key. Any number of keys; duplicates are fine."""
        ...

    def query(
        self,
        pk: str,
        *,
        prefix: str = "",
        low: str | None = None,
        high: str | None = None,
        index: Index | None = None,
        limit: int = 100,
        cursor: str | None = None,
        descending: bool = False,
    ) -> Page:
        """Rows of one partition in sort order: `prefix`, or `low` <= sort <= `high`.

        Sort order is that of the keys' UTF-8 bytes. With `index`, pk and the sort bounds refer to that index's pair.
        A cursor continues after the last row returned even if that row has since been deleted. Raises ValueError for
        a cursor that is not this query's, a prefix together with a range, or a limit below 1.

        An index finds rows: of each, only its key and that index's pair are told for certain. Everything else may hold
        its default (on AWS it does), so whoever needs it reads the row, which may have changed meanwhile.
        """
        ...

    def write(self, ops: Sequence[Op]) -> Conflict | None:
        """Apply all ops or none. None on success; the first lost condition otherwise.

        Two ops on one row in a single write are a ValueError, and so is a key that is empty, over 2,048 (pk) or 1,024
        (sk) bytes, or no valid Unicode. Raises ItemTooLargeError, UnavailableError.
        """
        ...

    def remove(self, keys: Sequence[tuple[str, str]]) -> None:
        """Delete rows, whatever stands in them; any number, in no order, and not at once.

        Half the price of a `write` of many. A crash, or UnavailableError, may leave some: a repetition deletes those.
        """
        ...


class Blobs(Protocol):
    """Large immutable values under content-addressed keys."""

    def put(self, key: str, data: bytes) -> None:
        """Store; writing the same key again is a no-op."""
        ...

    def get(self, key: str) -> bytes | None: ...

    def delete(self, key: str) -> None: ...

    def keys(self, prefix: str, limit: int) -> tuple[str, ...]:
        """Up to `limit` keys (1 to 1,000) that begin with `prefix`, in order."""
        ...


class Links(Protocol):
    """Addresses of blobs, for answers that are too small for them."""

    def link(self, key: str, seconds: int) -> str:
        """A URL under which anybody who has it can read the blob for that long. Does not look whether it exists."""
        ...


class QueueName(StrEnum):
    """The queues. `INTENTS` is FIFO per group; the others have no order."""

    INTENTS = "intents"
    STEPS = "steps"


class Outgoing(msgspec.Struct, frozen=True):
    """A message to send. `dedup_id` repeated within 5 minutes (per group) is swallowed by a FIFO queue, silently.

    `delay_ms` (0 to 900,000) is refused on a FIFO queue with ValueError. A FIFO queue needs `group` and `dedup_id`, of
    at most 128 characters each; a body takes at most 1 MiB. Other queues ignore `dedup_id`.
    """

    body: bytes
    group: str = ""
    dedup_id: str = ""
    delay_ms: int = 0


class Message(msgspec.Struct, frozen=True):
    """A delivered message. `receipt` is valid for this delivery only; `receives` counts deliveries from 1."""

    id: str
    body: bytes
    group: str
    receipt: str
    receives: int
    sent_at: int


class Queue(Protocol):
    """At-least-once delivery with visibility. In a FIFO queue the messages of one group come in the order sent, and

    a group with a message in flight delivers nothing else until that message is acknowledged or visible again.
    One receive may return several messages of one group, in order.
    """

    def send(self, messages: Sequence[Outgoing]) -> tuple[int, ...]:
        """Send in order; the indexes of entries that were not accepted (retry those), empty when all were."""
        ...

    def receive(self, limit: int, *, visibility_ms: int, wait_ms: int = 0) -> tuple[Message, ...]:
        """Take up to `limit` messages, hidden from others for `visibility_ms` (0 to 12 hours).

        Waits up to `wait_ms` for the first one; inside `Unit.batch()` it never waits.
        """
        ...

    def ack(self, receipts: Sequence[str]) -> None:
        """Remove for good. A receipt of an earlier delivery is ignored; on a FIFO queue, so is an expired one."""
        ...

    def retry(self, receipts: Sequence[str], *, delay_ms: int) -> None:
        """Make visible again after `delay_ms`, keeping the place in its group; until then the receipt stays good."""
        ...

    def dead_letter(self, receipts: Sequence[str], reason: str) -> None:
        """Move to the dead letters, where an operator finds body and reason."""
        ...

    def oldest_age_ms(self) -> int:
        """Age of the oldest message not yet acknowledged, 0 when empty."""
        ...


class Telling(msgspec.Struct, frozen=True):
    """An event of a tenant, for the bus. `unheard`: no definition listens to it, so nobody needs to look for one."""

    tenant: str
    event: Event
    unheard: bool = False


class DeadLetters(Protocol):
    """What a queue gave up on, for an operator who has put the cause right."""

    def dead_letters(self, limit: int = 100) -> tuple[tuple[Message, str], ...]:
        """The dead messages, oldest first, each with its reason; their receipts are empty. On SQS ten at most."""
        ...

    def redrive(self, limit: int = 100) -> int:
        """Send up to `limit` of them again, oldest first, as new messages; how many. They are removed after that:

        a crash in between leaves both.
        """
        ...


class Bus(Protocol):
    """Where the world outside hears of runs, and definitions that listen to them. At least once, in no order."""

    def put(self, tellings: Sequence[Telling]) -> tuple[int, ...]:
        """Put all; the indexes of those that were not taken (send those again), empty when all were.

        Raises UnavailableError; then nobody knows which were taken.
        """
        ...


class Timers(Protocol):
    """Wake-ups of runs. Delivered at least once, never before `at` by more than the port's clock skew."""

    def arm(self, run_id: str, at: int) -> None:
        """Ask for one wake-up of `run_id` at `at` (epoch ms; the past means now). Arming a pair again is a no-op.

        An earlier armed wake-up stays armed.
        """
        ...


class CronSchedules(Protocol):
    """An outside scheduler that calls us for each schedule: at least once per call, up to a minute late.

    It decides nothing: whoever is called looks at the schedule as stored then. A call too many or twice is harmless.
    """

    def put(self, key: ScheduleKey, recurrence: Recurrence) -> None:
        """Call for this schedule from now on as `recurrence` says, and no more as it was told before."""
        ...

    def remove(self, key: ScheduleKey) -> None:
        """Call no more for this schedule; an unknown one is no error."""
        ...


class Unit(Protocol):
    """Groups writes where the backend can; changes nothing where it cannot (AWS).

    Within `batch()` every write, send, ack and arm of this thread becomes durable together when it exits, or not at
    all. Within `batch()`, `part()` bounds what an exception undoes: it rolls back that part alone and re-raises.
    Callers keep the order of operations that is safe without any grouping.
    """

    def batch(self) -> AbstractContextManager[object]: ...

    def part(self) -> AbstractContextManager[object]: ...


class Secrets(Protocol):
    """Texts that nobody may read in the table: kept apart, encrypted, found by the name that rows hold."""

    def put(self, name: str, text: str) -> None:
        """Store under a name that was never used before; durable and readable everywhere when this returns."""
        ...

    def get(self, name: str) -> str | None:
        """None for an unknown name. Raises UnavailableError when it cannot be read now, SecretLostError for ever."""
        ...

    def delete(self, name: str) -> None:
        """Remove for good; an unknown name is no error."""
        ...


class Clock(Protocol):
    """Wall-clock time."""

    def now_ms(self) -> int: ...


class Ids(Protocol):
    """Fresh identities and secrets."""

    def uuid(self) -> str:
        """A new UUID, time-ordered (version 7)."""
        ...

    def token(self, size: int) -> str:
        """`size` bytes from the system's secure source, base64url without padding."""
        ...


class Faults(Protocol):
    """Named points at each boundary where a simulated crash may strike. Does nothing in production."""

    def at(self, point: str) -> None: ...
