"""What every implementation of a port refuses in the same way, so that a laptop finds what AWS would reject.

Never touches storage: plain checks on arguments, and the wire form of query cursors.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from typing import Final

import msgspec

from ductor.ports import (
    MAX_ITEM_BYTES,
    MAX_OPS_PER_WRITE,
    Check,
    Condition,
    Expect,
    Index,
    Item,
    ItemTooLargeError,
    Message,
    Op,
    Outgoing,
    Put,
)

MAX_PK_BYTES: Final = 2048
MAX_SK_BYTES: Final = 1024
MAX_MESSAGE_BYTES: Final = 1_048_576
MAX_QUEUE_ID_LENGTH: Final = 128
MAX_DELAY_MS: Final = 900_000
MAX_VISIBILITY_MS: Final = 43_200_000
DEDUP_WINDOW_MS: Final = 300_000

_NAMES_AND_NUMBERS: Final = 100  # attribute names and numbers count towards DynamoDB's item size
_SURELY_SMALL: Final = MAX_ITEM_BYTES - 4 * (MAX_PK_BYTES + MAX_SK_BYTES) - _NAMES_AND_NUMBERS
_SURELY_SHORT: Final = MAX_SK_BYTES // 4
_LAST_CHARACTER: Final = "\U0010ffff"


def holds(expect: Condition, version: int | None) -> bool:
    """Whether a condition holds for a stored version; None says that there is no row."""
    if expect is Expect.ANY:
        return True
    if expect is Expect.ABSENT:
        return version is None
    if expect is Expect.PRESENT:
        return version is not None
    return version == expect


def check_key(pk: str, sk: str) -> None:
    """Refuse what DynamoDB refuses as a key: empty or too long. Raises ValueError, also for lone surrogates."""
    if 0 < len(pk) <= _SURELY_SHORT and 0 < len(sk) <= _SURELY_SHORT and pk.isascii() and sk.isascii():
        return  # nearly all of them; a header alone has four
    if not pk or not sk:
        raise ValueError("pk and sk must not be empty")
    if len(pk) > MAX_PK_BYTES // 4 and len(pk.encode()) > MAX_PK_BYTES:
        raise ValueError(f"pk is longer than {MAX_PK_BYTES} bytes")
    if len(sk) > MAX_SK_BYTES // 4 and len(sk.encode()) > MAX_SK_BYTES:
        raise ValueError(f"sk is longer than {MAX_SK_BYTES} bytes")
    if not (pk.isascii() and sk.isascii()):
        (pk + sk).encode()


def check_item(item: Item) -> None:
    """Refuse keys and sizes that DynamoDB refuses. Raises ValueError, ItemTooLargeError."""
    check_key(item.pk, item.sk)
    for pair in (item.i1, item.i2, item.i3):
        if pair is not None:
            check_key(*pair)
    if len(item.body) > _SURELY_SMALL and _item_bytes(item) > MAX_ITEM_BYTES:
        raise ItemTooLargeError(f"the row {item.pk!r}, {item.sk!r} is larger than {MAX_ITEM_BYTES} bytes")


def _item_bytes(item: Item) -> int:
    pairs = ((item.pk, item.sk), item.i1 or (), item.i2 or (), item.i3 or ())
    return _NAMES_AND_NUMBERS + len(item.body) + sum(len(part.encode()) for pair in pairs for part in pair)


def check_ops(ops: Sequence[Op]) -> None:
    """Refuse a write that no implementation could apply. Raises ValueError, ItemTooLargeError."""
    if len(ops) > MAX_OPS_PER_WRITE:
        raise ValueError(f"a write takes at most {MAX_OPS_PER_WRITE} ops, not {len(ops)}")
    for op in ops:
        if isinstance(op, Put):
            check_item(op.item)
        else:
            check_key(op.pk, op.sk)
    if len(ops) > 1 and len({key_of(op) for op in ops}) < len(ops):
        raise ValueError("two ops of one write name the same row")


def key_of(op: Op) -> tuple[str, str]:
    """The (pk, sk) that an op is about."""
    return (op.item.pk, op.item.sk) if isinstance(op, Put) else (op.pk, op.sk)


def needs_undo(ops: Sequence[Op]) -> bool:
    """Whether a condition may be lost after an earlier op of the same write has already changed something."""
    written = False
    for op in ops:
        if written and op.expect is not Expect.ANY:
            return True
        written = written or not isinstance(op, Check)
    return False


def sort_bounds(prefix: str, low: str | None, high: str | None) -> tuple[str, str | None, str | None]:
    """(low, high inclusive, end exclusive) of a query. Raises ValueError when a prefix comes with a range."""
    if prefix and (low is not None or high is not None):
        raise ValueError("a query takes a prefix or a range, not both")
    if prefix:
        return prefix, None, _after_prefix(prefix)
    return low or "", high, None


def _after_prefix(prefix: str) -> str | None:
    """The smallest string above everything that starts with `prefix`; None when there is none."""
    stem = prefix.rstrip(_LAST_CHARACTER)
    if not stem:
        return None
    following = ord(stem[-1]) + 1
    return stem[:-1] + ("\ue000" if following == 0xD800 else chr(following))


def check_limit(limit: int) -> None:
    """Refuse a page or batch size below one. Raises ValueError."""
    if limit < 1:
        raise ValueError(f"the limit must be at least 1, not {limit}")


def encode_cursor(index: Index | None, pk: str, position: Sequence[str]) -> str:
    """The cursor after `position`: the sort key, for an index followed by the row's own key."""
    return base64.urlsafe_b64encode(msgspec.json.encode([index or "", pk, *position])).decode().rstrip("=")


def position_of(item: Item, index: Index | None) -> tuple[str, ...]:
    """Where a row stands in a query's order, as a cursor keeps it."""
    if index is None:
        return (item.sk,)
    pair = item.i1 if index is Index.I1 else item.i2 if index is Index.I2 else item.i3
    assert pair is not None, "a row without the pair is not in the index"
    return (pair[1], item.pk, item.sk)


def decode_cursor(cursor: str, index: Index | None, pk: str) -> list[str]:
    """The position in a cursor of this very query. Raises ValueError for any other text."""
    try:
        padded = cursor + "=" * (-len(cursor) % 4)
        fields = msgspec.json.decode(base64.b64decode(padded, altchars=b"-_", validate=True), type=list[str])
    except (binascii.Error, msgspec.DecodeError, ValueError) as error:
        raise ValueError("the cursor is not one that a query returned") from error
    if fields[:2] != [index or "", pk] or len(fields) != (3 if index is None else 5):
        raise ValueError("the cursor belongs to another query")
    return fields[2:]


def check_outgoing(messages: Sequence[Outgoing], *, fifo: bool) -> None:
    """Refuse what SQS refuses of a message. Raises ValueError."""
    for message in messages:
        if len(message.body) > MAX_MESSAGE_BYTES:
            raise ValueError(f"a message takes at most {MAX_MESSAGE_BYTES} bytes, not {len(message.body)}")
        if len(message.group) > MAX_QUEUE_ID_LENGTH or len(message.dedup_id) > MAX_QUEUE_ID_LENGTH:
            raise ValueError(f"group and dedup_id take at most {MAX_QUEUE_ID_LENGTH} characters")
        if fifo and (not message.group or not message.dedup_id):
            raise ValueError("a FIFO queue needs a group and a dedup_id")
        if fifo and message.delay_ms:
            raise ValueError("a FIFO queue takes no delay")
        if not 0 <= message.delay_ms <= MAX_DELAY_MS:
            raise ValueError(f"delay_ms is between 0 and {MAX_DELAY_MS}")


def check_visibility(milliseconds: int) -> None:
    """Refuse a visibility outside SQS's 0 to 12 hours. Raises ValueError."""
    if not 0 <= milliseconds <= MAX_VISIBILITY_MS:
        raise ValueError(f"a visibility is between 0 and {MAX_VISIBILITY_MS} ms")


def receipt_of(message_id: int, receives: int, group: str) -> str:
    """The receipt of one delivery. Ids are never reused, so a receipt never fits another delivery."""
    return f"{message_id}:{receives}:{group}"


def read_receipt(receipt: str) -> tuple[int, int, str]:
    """(message id, receives, group). Raises ValueError for a text that no receive returned."""
    message_id, receives, group = receipt.split(":", 2)
    return int(message_id), int(receives), group


def again(dead: Sequence[Message], now: int) -> list[Outgoing]:
    """Dead messages as new ones, under de-duplication ids that were never used."""
    return [Outgoing(one.body, group=one.group, dedup_id=f"{one.id[:90]}~again~{now}") for one in dead]
