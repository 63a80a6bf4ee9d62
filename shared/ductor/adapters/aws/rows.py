"""The one table as pynamodb sees it, and rows of it as items of ours and back. Reads and writes nothing.

Bodies that would take a row near or over 1 KB are deflated and marked: DynamoDB bills writes by the KB.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from functools import cache
from typing import Any, ClassVar, Final

from pynamodb.attributes import BinaryAttribute, NumberAttribute, UnicodeAttribute
from pynamodb.indexes import GlobalSecondaryIndex, KeysOnlyProjection
from pynamodb.models import Model

from ductor.adapters.aws.clients import CONNECT_SECONDS, CONNECTIONS, READ_SECONDS, RETRIES
from ductor.adapters.aws.words import WORDS
from ductor.ports import Item

DEFLATED: Final = "z"
"""The mark of a deflated body."""

DEFLATED_WITH_WORDS: Final = "w1"
"""The mark of a body deflated against `WORDS`, by which a small one shrinks to a third instead of a half."""

_PLAIN_BYTES: Final = 600
"""Keys, index entries and names of a run header take up to 400 bytes of the first KB."""

_LEVEL: Final = 6


def index_name(attribute: str) -> str:
    """What DynamoDB calls the index over the pair `i1`, `i2` or `i3`; a name has 3 characters at least."""
    return f"by-{attribute}"


RawItem = Mapping[str, Mapping[str, Any]]
"""A row as the wire has it: attribute name to {type: value}."""


class Row(Model):
    """A row of any kind. `packed` says how `body` is stored: absent is as it is, `z` deflated."""

    pk = UnicodeAttribute(hash_key=True)
    sk = UnicodeAttribute(range_key=True)
    version = NumberAttribute()
    body = BinaryAttribute(legacy_encoding=False)
    packed = UnicodeAttribute(null=True)
    ttl = NumberAttribute(null=True)
    i1pk = UnicodeAttribute(null=True)
    i1sk = UnicodeAttribute(null=True)
    i2pk = UnicodeAttribute(null=True)
    i2sk = UnicodeAttribute(null=True)
    i3pk = UnicodeAttribute(null=True)
    i3sk = UnicodeAttribute(null=True)


# The indexes project keys only. A run header is written at every tick, but its list entries change only with its
# status (i1), never (i2), or with its wake-up (i3). Projecting whole rows would write all three again at every tick: at
# 2 KB a tick 6 more write units ($3.75 per million ticks) beside its own 2. What readers pay instead is a batch read of
# the rows that they really show, 1 read unit ($0.125 per million) each, and all of them make it anyway: a list shows
# rows as they are now, not as a lagging index has them. So the adapter does not read the rows a second time.


class _ByStatus(GlobalSecondaryIndex[Row]):  # type: ignore[no-untyped-call]
    class Meta:
        index_name = "by-i1"
        projection = KeysOnlyProjection()

    i1pk = UnicodeAttribute(hash_key=True)
    i1sk = UnicodeAttribute(range_key=True)


class _ByTenant(GlobalSecondaryIndex[Row]):  # type: ignore[no-untyped-call]
    class Meta:
        index_name = "by-i2"
        projection = KeysOnlyProjection()

    i2pk = UnicodeAttribute(hash_key=True)
    i2sk = UnicodeAttribute(range_key=True)


class _ByWakeUp(GlobalSecondaryIndex[Row]):  # type: ignore[no-untyped-call]
    class Meta:
        index_name = "by-i3"
        projection = KeysOnlyProjection()

    i3pk = UnicodeAttribute(hash_key=True)
    i3sk = UnicodeAttribute(range_key=True)


@cache
def row_class(name: str) -> type[Row]:
    """The model bound to the table of that name, with the client of this process."""

    class Bound(Row):
        class Meta:
            table_name = name
            billing_mode = "PAY_PER_REQUEST"
            connect_timeout_seconds = CONNECT_SECONDS
            read_timeout_seconds = READ_SECONDS
            max_pool_connections = CONNECTIONS
            retry_configuration: ClassVar[Any] = RETRIES

        by_status = _ByStatus()
        by_tenant = _ByTenant()
        by_wake_up = _ByWakeUp()

    return Bound


def row_of(model: type[Row], item: Item) -> Row:
    """The row to store for an item."""
    body, packed = _pack(item.body)
    (i1pk, i1sk), (i2pk, i2sk), (i3pk, i3sk) = (pair or (None, None) for pair in (item.i1, item.i2, item.i3))
    return model(
        item.pk,
        item.sk,
        version=item.version,
        body=body,
        packed=packed,
        ttl=item.ttl,
        i1pk=i1pk,
        i1sk=i1sk,
        i2pk=i2pk,
        i2sk=i2sk,
        i3pk=i3pk,
        i3sk=i3sk,
    )


def item_of(raw: RawItem) -> Item:
    """The item in a row. An index answers keys alone: `version` and `body` then hold their defaults."""
    if "version" not in raw:
        return Item(pk=raw["pk"]["S"], sk=raw["sk"]["S"], i1=_pair(raw, "i1"), i2=_pair(raw, "i2"), i3=_pair(raw, "i3"))
    body = bytes(raw["body"]["B"])
    return Item(
        pk=raw["pk"]["S"],
        sk=raw["sk"]["S"],
        version=int(raw["version"]["N"]),
        body=_unpack(body, raw["packed"]["S"] if "packed" in raw else ""),
        ttl=int(raw["ttl"]["N"]) if "ttl" in raw else None,
        i1=_pair(raw, "i1"),
        i2=_pair(raw, "i2"),
        i3=_pair(raw, "i3"),
    )


def _pair(raw: RawItem, name: str) -> tuple[str, str] | None:
    partition = raw.get(f"{name}pk")
    return None if partition is None else (partition["S"], raw[f"{name}sk"]["S"])


def _pack(body: bytes) -> tuple[bytes, str | None]:
    if len(body) <= _PLAIN_BYTES:
        return body, None
    packer = zlib.compressobj(_LEVEL, zdict=WORDS)
    deflated = packer.compress(body) + packer.flush()
    return (deflated, DEFLATED_WITH_WORDS) if len(deflated) < len(body) else (body, None)


def _unpack(body: bytes, mark: str) -> bytes:
    """What cannot be unpacked is handed over as it is: whoever decodes it finds it unreadable, and knows what then."""
    try:
        if mark == DEFLATED_WITH_WORDS:
            return zlib.decompressobj(zdict=WORDS).decompress(body)
        return zlib.decompress(body) if mark == DEFLATED else body
    except zlib.error:
        return body
