"""The run header's row and its index entries."""

from __future__ import annotations

import msgspec
import pytest

from ductor.app.headers import (
    SHARDS,
    header_item,
    history_sk,
    is_stalled,
    listed_as,
    mark_stalled,
    read_header,
    read_what_is_readable,
    shard,
    starting_sort,
    tenant_of,
)
from ductor.model.enums import NodeStatus, RunStatus
from ductor.model.run import NodeState, Origin, RunState, ScopeState
from ductor.ports import Item


def state(**fields: object) -> RunState:
    origin = Origin("run-1", "tenant-1", "def-1", "hello", 3, created_at=1_700_000_000_000)
    return RunState(origin=origin, **fields)  # type: ignore[arg-type]


def test_a_header_survives_its_row() -> None:
    before = state(version=4, seq=9, status=RunStatus.RUNNING, wake_at=5, attributes={"n": 9007199254740993})
    item = header_item(before)
    assert (item.pk, item.sk, item.version) == ("R#run-1", "HEAD", 4)
    assert read_header(item) == before
    assert tenant_of(item) == "tenant-1"


def test_a_run_is_listed_by_status_and_by_tenant_in_order_of_admission() -> None:
    item = header_item(state(status=RunStatus.PAUSED))
    sort = "1700000000000#run-1"
    assert item.i1 == (f"RS#tenant-1#paused#{shard('run-1')}", sort)
    assert item.i2 == (f"RT#tenant-1#{shard('run-1')}", sort)


def test_a_run_with_only_parked_nodes_is_listed_as_waiting() -> None:
    root = ScopeState(nodes={"a": NodeState(status=NodeStatus.WAITING)}, parked=1)
    item = header_item(state(status=RunStatus.RUNNING, root=root))
    assert item.i1 is not None
    assert item.i1[0].startswith("RS#tenant-1#waiting#")


@pytest.mark.parametrize("status", RunStatus)
def test_a_run_that_has_begun_is_found_by_its_wake_up_also_after_its_end(status: RunStatus) -> None:
    item = header_item(state(version=2, status=status, wake_at=1_700_000_060_000))
    assert item.i3 == (f"WAKE#{shard('run-1')}", "1700000060000#run-1")


def test_a_run_that_waits_for_its_first_tick_has_one_entry_by_when_it_was_admitted() -> None:
    item = header_item(state(wake_at=1_700_000_060_000))
    assert item.i1 is None
    assert item.i3 == (f"STARTING#{shard('run-1')}", "1700000000000#run-1#tenant-1")
    assert (starting_sort(item, "tenant-1"), starting_sort(item, "tenant-10")) == ("1700000000000#run-1", None)


def test_a_completed_run_stands_among_all_runs_only() -> None:
    item = header_item(state(version=2, status=RunStatus.COMPLETED))
    assert (item.i1, item.i3) == (None, None)
    assert item.i2 is not None


@pytest.mark.parametrize("status", RunStatus)
@pytest.mark.parametrize(("version", "wake_at"), [(1, 0), (1, 7), (2, 0), (2, 7)])
def test_the_entries_of_a_row_that_cannot_be_read_tell_its_status(
    status: RunStatus, version: int, wake_at: int
) -> None:
    item = header_item(state(version=version, status=status, wake_at=wake_at))
    assert listed_as(item) is status
    unreadable = msgspec.structs.replace(item, body=b'{"origin":{"run_id":"run-1"},"status":5}')
    assert read_what_is_readable(unreadable) is None
    stalled = mark_stalled(unreadable, 9)
    assert listed_as(stalled) is status
    assert is_stalled(stalled)


def test_a_run_that_stalls_before_its_first_tick_stays_in_the_list_of_those() -> None:
    item = mark_stalled(header_item(state(wake_at=1_700_000_060_000)), 1_700_000_000_001)
    assert item.i1 == (f"RS#tenant-1#pending#{shard('run-1')}", "1700000000000#run-1")


@pytest.mark.parametrize("status", RunStatus)
def test_a_run_without_a_wake_up_is_not_found_by_one(status: RunStatus) -> None:
    assert header_item(state(status=status)).i3 is None


def test_a_stalled_run_is_found_as_such_and_not_by_its_wake_up() -> None:
    item = mark_stalled(header_item(state(status=RunStatus.RUNNING, wake_at=7)), 1_700_000_000_001)
    assert is_stalled(item)
    assert item.i3 == (f"STALLED#{shard('run-1')}", "1700000000001#run-1")
    assert not is_stalled(header_item(state()))


@pytest.mark.parametrize("body", [b"", b"[]", b"nonsense", b'{"origin": 5}'])
def test_of_an_unreadable_row_nothing_is_made_up(body: bytes) -> None:
    assert read_what_is_readable(Item(pk="R#run-1", sk="HEAD", body=body)) is None


def test_history_rows_sort_by_number() -> None:
    keys = [history_sk(seq) for seq in (1, 9, 10, 99, 1_000, 25_000)]
    assert keys == sorted(keys)


def test_runs_spread_over_all_shards() -> None:
    assert {shard(f"run-{number}") for number in range(200)} == set(range(SHARDS))


def test_a_run_that_waits_for_children_only_is_listed_as_waiting() -> None:
    entry = NodeState(status=NodeStatus.SCHEDULED, attempt=1, generation=1)
    root = ScopeState(nodes={"a": entry}, attempts=1)
    item = header_item(state(status=RunStatus.RUNNING, root=root, children={"a/1/1": "cancel"}))
    assert item.i1 is not None
    assert item.i1[0].startswith("RS#tenant-1#waiting#")
