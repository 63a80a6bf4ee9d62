"""Conditional, all-or-nothing writes of `ports.Table`."""

from __future__ import annotations

import pytest

from ductor.ports import (
    MAX_ITEM_BYTES,
    MAX_OPS_PER_WRITE,
    Check,
    Condition,
    Conflict,
    Delete,
    Expect,
    Index,
    Item,
    ItemTooLargeError,
    Op,
    Put,
    Table,
)


def row(sk: str = "a", version: int = 1, body: bytes = b"{}") -> Item:
    return Item(pk="p", sk=sk, version=version, body=body)


STORED = row(version=3, body=b"stored")

CONDITIONS: list[tuple[Condition, bool, bool]] = [
    # condition, holds on an absent row, holds on the stored row
    (Expect.ANY, True, True),
    (Expect.ABSENT, True, False),
    (Expect.PRESENT, False, True),
    (3, False, True),
    (2, False, False),
]


@pytest.mark.parametrize(("expect", "on_absent", "on_stored"), CONDITIONS)
def test_put_applies_only_if_its_condition_holds(
    table: Table, expect: Condition, on_absent: bool, on_stored: bool
) -> None:
    new = row(version=9, body=b"new")
    assert table.write([Put(new, expect)]) == (None if on_absent else Conflict(0, None))
    assert table.get("p", "a") == (new if on_absent else None)

    table.write([Put(STORED)])
    assert table.write([Put(new, expect)]) == (None if on_stored else Conflict(0, STORED))
    assert table.get("p", "a") == (new if on_stored else STORED)


@pytest.mark.parametrize(("expect", "on_absent", "on_stored"), CONDITIONS)
def test_delete_applies_only_if_its_condition_holds(
    table: Table, expect: Condition, on_absent: bool, on_stored: bool
) -> None:
    assert table.write([Delete("p", "a", expect)]) == (None if on_absent else Conflict(0, None))

    table.write([Put(STORED)])
    assert table.write([Delete("p", "a", expect)]) == (None if on_stored else Conflict(0, STORED))
    assert table.get("p", "a") == (None if on_stored else STORED)


@pytest.mark.parametrize(("expect", "on_absent", "on_stored"), CONDITIONS)
def test_check_refuses_the_whole_write_and_changes_nothing(
    table: Table, expect: Condition, on_absent: bool, on_stored: bool
) -> None:
    other = row("b")
    conflict = table.write([Put(other), Check("p", "a", expect)])
    assert conflict == (None if on_absent else Conflict(1, None))
    assert table.get("p", "b") == (other if on_absent else None)

    table.write([Put(STORED), Delete("p", "b")])
    conflict = table.write([Put(other), Check("p", "a", expect)])
    assert conflict == (None if on_stored else Conflict(1, STORED))
    assert table.get("p", "b") == (other if on_stored else None)
    assert table.get("p", "a") == STORED


def test_a_conflict_in_the_middle_undoes_what_came_before_it(table: Table) -> None:
    table.write([Put(row("a")), Put(row("b", version=5)), Put(row("d"))])
    conflict = table.write(
        [
            Put(row("a", version=2), 1),
            Delete("p", "d"),
            Put(row("b", version=6), 4),
            Put(row("c"), Expect.ABSENT),
        ]
    )
    assert conflict == Conflict(2, row("b", version=5))
    assert table.query("p").items == (row("a"), row("b", version=5), row("d"))


def test_the_first_of_several_lost_conditions_is_told(table: Table) -> None:
    table.write([Put(row("b"))])
    conflict = table.write([Put(row("a")), Check("p", "x"), Put(row("b"), Expect.ABSENT)])
    assert conflict == Conflict(1, None)


def test_a_put_replaces_the_whole_row(table: Table) -> None:
    table.write([Put(Item(pk="p", sk="a", ttl=5, body=b"long", i1=("x", "1"), i2=("y", "2"), i3=("z", "3")))])
    table.write([Put(row("a", version=2))])
    assert table.get("p", "a") == row("a", version=2)


def test_every_field_survives(table: Table) -> None:
    item = Item(
        pk="é#1",
        sk="\U0001f600",
        version=2**53,
        body=bytes(range(256)),
        ttl=4_102_444_800,
        i1=("x", "1"),
        i3=("z", "3"),
    )
    table.write([Put(item)])
    assert table.get("é#1", "\U0001f600") == item


def test_an_empty_write_succeeds(table: Table) -> None:
    assert table.write([]) is None


@pytest.mark.parametrize("second", [Put(row("a")), Delete("p", "a"), Check("p", "a")])
def test_two_ops_on_one_row_are_refused(table: Table, second: Op) -> None:
    with pytest.raises(ValueError, match="same row"):
        table.write([Put(row("a")), second])
    assert table.get("p", "a") is None


def test_a_write_takes_a_hundred_ops_and_no_more(table: Table) -> None:
    ops = [Put(row(f"{n:03}")) for n in range(MAX_OPS_PER_WRITE + 1)]
    with pytest.raises(ValueError, match="at most"):
        table.write(ops)
    assert table.query("p").items == ()
    assert table.write(ops[:-1]) is None
    assert len(table.query("p").items) == MAX_OPS_PER_WRITE


def test_a_row_over_the_limit_stores_nothing_of_the_write(table: Table) -> None:
    with pytest.raises(ItemTooLargeError):
        table.write([Put(row("a")), Put(row("b", body=b"x" * MAX_ITEM_BYTES))])
    assert table.query("p").items == ()


def test_a_row_near_the_limit_is_stored(table: Table) -> None:
    large = row(body=b"x" * (MAX_ITEM_BYTES - 1000))
    table.write([Put(large)])
    assert table.get("p", "a") == large


@pytest.mark.parametrize(("pk", "sk"), [("", "a"), ("p", ""), ("p" * 2049, "a"), ("p", "é" * 513), ("p", "\ud800")])
def test_keys_that_dynamodb_refuses_are_refused(table: Table, pk: str, sk: str) -> None:
    with pytest.raises(ValueError, match=r"pk|sk|surrogates"):
        table.write([Put(Item(pk=pk, sk=sk))])
    with pytest.raises(ValueError, match=r"pk|sk|surrogates"):
        table.get(pk, sk)
    with pytest.raises(ValueError, match=r"pk|sk|surrogates"):
        table.write([Put(Item(pk="p", sk="a", i2=(pk, sk)))])


def test_rows_are_removed_whether_they_are_there_or_not(table: Table) -> None:
    for number in range(60):
        table.write([Put(row(f"{number:02d}", version=number + 1))])
    doomed = [("p", f"{number:02d}") for number in range(1, 60)]
    table.remove([*doomed, *doomed[:3], ("p", "never there"), ("elsewhere", "a")])
    assert [item.sk for item in table.query("p").items] == ["00"]
    table.remove(doomed)
    table.remove([])
    assert [item.sk for item in table.query("p").items] == ["00"]


def test_a_removed_row_is_in_no_index(table: Table) -> None:
    table.write([Put(Item(pk="p", sk="a", i1=("index", "1")))])
    table.remove([("p", "a")])
    assert table.query("index", index=Index.I1).items == ()


@pytest.mark.parametrize("key", [("", "a"), ("p", ""), ("p", "x" * 1_025), ("p" * 2_049, "a")])
def test_a_key_that_no_row_can_have_is_not_removed(table: Table, key: tuple[str, str]) -> None:
    table.write([Put(row())])
    with pytest.raises(ValueError, match=r"[ps]k"):
        table.remove([("p", "a"), key])
    assert table.get("p", "a") is not None
