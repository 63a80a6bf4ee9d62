"""AWS's rules of what a request counts as: sizes and units, from the documents of each service. Pure."""

from __future__ import annotations

import base64
import math
from collections.abc import Iterable, Mapping
from typing import Any, Final

Raw = Mapping[str, Mapping[str, Any]]
"""An item as the wire has it: attribute name to {type: value}."""

KB: Final = 1024
WRITE_BYTES: Final = KB
READ_BYTES: Final = 4 * KB
CHUNK_BYTES: Final = 64 * KB
INDEXES: Final = (("i1pk", "i1sk"), ("i2pk", "i2sk"), ("i3pk", "i3sk"))
KEYS: Final = ("pk", "sk")


def item_bytes(item: Raw | None) -> int:
    """Names and values in UTF-8; binary as it is; a number about a byte per two digits, and one more."""
    return sum(len(name.encode()) + _value_bytes(value) for name, value in (item or {}).items())


def _value_bytes(value: Mapping[str, Any]) -> int:
    ((kind, content),) = value.items()
    if kind == "S":
        return len(content.encode())
    if kind == "N":
        return (len(str(content).lstrip("-").replace(".", "")) + 1) // 2 + 1
    if kind == "B":
        return len(content if isinstance(content, bytes | bytearray) else base64.b64decode(content))
    raise TypeError(f"no row of ours has an attribute of type {kind}")


def write_units(before: Raw | None, after: Raw | None, *, transaction: bool = False) -> int:
    """Of one item of the table itself: the larger of before and after in KB, at least 1; double in a transaction.

    A write whose condition is lost costs the same, with what stands there as `before`.
    """
    units = max(1, math.ceil(max(item_bytes(before), item_bytes(after)) / WRITE_BYTES))
    return units * 2 if transaction else units


def index_units(before: Raw | None, after: Raw | None) -> int:
    """Of the indexes, which project keys only: nothing unless an entry comes, goes, or moves (then 2)."""
    return sum(_entry_units(before or {}, after or {}, pair) for pair in INDEXES)


def _entry_units(before: Raw, after: Raw, pair: tuple[str, str]) -> int:
    names = (*KEYS, *pair)
    old, new = (_entry(item, names, pair[0]) for item in (before, after))
    if old == new:
        return 0
    return sum(math.ceil(item_bytes(entry) / WRITE_BYTES) for entry in (old, new) if entry is not None)


def _entry(item: Raw, names: Iterable[str], partition: str) -> Raw | None:
    return {name: item[name] for name in names} if partition in item else None


def read_units(sizes: Iterable[int], *, consistent: bool = True, together: bool = False) -> float:
    """Of items that are read one by one, or `together` by a query, whose sizes add up before rounding."""
    listed = list(sizes)
    if together:
        listed = [sum(listed)]
    units = sum(max(1, math.ceil(size / READ_BYTES)) for size in listed)
    return units if consistent else units / 2


def queue_requests(bodies: Iterable[str]) -> int:
    """Of one call that carries these messages: a request per 64 KB, at least one."""
    return max(1, math.ceil(sum(len(body.encode()) for body in bodies) / CHUNK_BYTES))
