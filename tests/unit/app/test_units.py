"""How AWS counts what a request takes, held against the examples of its documents."""

from __future__ import annotations

from typing import Any

import pytest
from tests.benchmarks.units import index_units, item_bytes, queue_requests, read_units, write_units


def row(size: int = 0, **attributes: Any) -> dict[str, dict[str, Any]]:
    return {"pk": {"S": "p"}, "sk": {"S": "s"}, "body": {"B": b"x" * size}, **attributes}


FRAME = item_bytes(row())


def test_an_item_is_its_names_and_values() -> None:
    assert item_bytes({"name": {"S": "häuser"}, "n": {"N": "12345"}, "b": {"B": "eHh4"}}) == 4 + 7 + 1 + 4 + 1 + 3
    assert item_bytes(None) == 0


@pytest.mark.parametrize(
    ("before", "after", "units"),
    [
        (None, 100, 1),
        (None, 1024 - FRAME, 1),
        (None, 1025 - FRAME, 2),
        (5_000, 100, 5),
        (5_000, None, 5),
        (None, None, 1),
    ],
)
def test_a_write_takes_the_larger_of_before_and_after(before: int | None, after: int | None, units: int) -> None:
    old, new = (None if size is None else row(size) for size in (before, after))
    assert write_units(old, new) == units
    assert write_units(old, new, transaction=True) == 2 * units


def entry(partition: str, sort: str = "1") -> dict[str, dict[str, Any]]:
    return row(i1pk={"S": partition}, i1sk={"S": sort})


@pytest.mark.parametrize(
    ("before", "after", "units"),
    [
        (None, row(), 0),
        (None, entry("a"), 1),
        (entry("a"), None, 1),
        (entry("a"), row(), 1),
        (entry("a"), entry("b"), 2),
        (entry("a"), entry("a", "2"), 2),
        (entry("a"), {**entry("a"), "body": {"B": b"other"}}, 0),
    ],
)
def test_an_index_takes_writes_only_when_an_entry_changes(before: Any, after: Any, units: int) -> None:
    assert index_units(before, after) == units


@pytest.mark.parametrize(
    ("sizes", "how", "units"),
    [
        ([0], {}, 1),
        ([4_096, 4_097], {}, 3),
        ([4_096, 4_097], {"together": True}, 3),
        ([100] * 40, {"together": True}, 1),
        ([100], {"consistent": False}, 0.5),
    ],
)
def test_reads_are_counted_by_4_kb(sizes: list[int], how: Any, units: float) -> None:
    assert read_units(sizes, **how) == units


@pytest.mark.parametrize(
    ("bodies", "requests"), [([], 1), (["x" * 65_536], 1), (["x" * 65_537], 2), (["x" * 30_000] * 5, 3)]
)
def test_a_request_to_a_queue_counts_by_64_kb(bodies: list[str], requests: int) -> None:
    assert queue_requests(bodies) == requests
