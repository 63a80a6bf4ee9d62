"""Reads of `ports.Table`: single rows, many rows, and ordered pages of a partition or an index."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from ductor.ports import Delete, Index, Item, Put, Table


def put(table: Table, *sort_keys: str, pk: str = "p") -> None:
    for sk in sort_keys:
        table.write([Put(Item(pk=pk, sk=sk))])


def keys(table: Table, pk: str = "p", **how: Any) -> list[str]:
    return [item.sk for item in table.query(pk, **how).items]


def walk(table: Table, pk: str = "p", **how: Any) -> list[str]:
    """All sort keys, page by page."""
    found: list[str] = []
    cursor = None
    while True:
        page = table.query(pk, cursor=cursor, **how)
        found += [item.sk for item in page.items]
        cursor = page.cursor
        if cursor is None:
            return found


def test_a_row_that_does_not_exist_is_none(table: Table) -> None:
    put(table, "a")
    assert table.get("p", "b") is None
    assert table.get("q", "a") is None


def test_batch_get_takes_any_number_of_keys_with_repeats(table: Table) -> None:
    names = [f"{n:03}" for n in range(250)]
    put(table, *names[::2])
    wanted = [("p", name) for name in names] * 2 + [("q", "000")]
    assert table.batch_get(wanted) == {("p", name): Item(pk="p", sk=name) for name in names[::2]}


def test_batch_get_of_nothing_is_empty(table: Table) -> None:
    assert table.batch_get([]) == {}


def test_a_query_of_an_empty_partition_is_one_empty_page(table: Table) -> None:
    put(table, "a", pk="other")
    page = table.query("p")
    assert (page.items, page.cursor) == ((), None)


def test_rows_come_in_the_order_of_their_utf8_bytes(table: Table) -> None:
    names = ["a", "B", "b", "_", "é", "\uffff", "\U0001f600", "ab", "a\x00", "Z", "中"]
    put(table, *names)
    ordered = sorted(names, key=str.encode)
    assert keys(table) == ordered
    assert keys(table, descending=True) == ordered[::-1]


def test_a_prefix_selects_exactly_what_starts_with_it(table: Table) -> None:
    put(table, "T", "T#1", "T#2", "T#", "T$", "S#1", "T#\U0010ffff", "T#\U0010ffffx", "U")
    assert keys(table, prefix="T#") == ["T#", "T#1", "T#2", "T#\U0010ffff", "T#\U0010ffffx"]
    assert keys(table, prefix="T#\U0010ffff") == ["T#\U0010ffff", "T#\U0010ffffx"]
    assert keys(table, prefix="\U0010ffff") == []


def test_a_prefix_ending_before_the_surrogates_is_exact(table: Table) -> None:
    put(table, "\ud7ff", "\ud7ffx", "\ue000")
    assert keys(table, prefix="\ud7ff") == ["\ud7ff", "\ud7ffx"]


def test_a_prefix_takes_no_wildcards(table: Table) -> None:
    put(table, "a%", "ab", "a_", "A%")
    assert keys(table, prefix="a%") == ["a%"]
    assert keys(table, prefix="a_") == ["a_"]


def test_a_range_includes_both_ends(table: Table) -> None:
    put(table, "a", "b", "c", "d")
    assert keys(table, low="b", high="c") == ["b", "c"]
    assert keys(table, low="b") == ["b", "c", "d"]
    assert keys(table, high="b") == ["a", "b"]
    assert keys(table, low="c", high="b") == []


def test_a_prefix_with_a_range_is_refused(table: Table) -> None:
    with pytest.raises(ValueError, match="prefix or a range"):
        table.query("p", prefix="a", low="b")


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("limit", [1, 2, 3, 7, 8])
def test_pages_give_every_row_once_in_order(table: Table, limit: int, descending: bool) -> None:
    put(table, *"abcdefg", "x")
    expected = sorted("abcdefg", reverse=descending)
    assert walk(table, limit=limit, descending=descending, high="g") == expected


def test_a_cursor_outlives_the_row_it_points_to(table: Table) -> None:
    put(table, *"abcdef")
    page = table.query("p", limit=3)
    table.write([Delete("p", "c"), Delete("p", "d")])
    put(table, "bb", "cc")
    assert keys(table, cursor=page.cursor) == ["cc", "e", "f"]


def test_a_descending_cursor_outlives_the_row_it_points_to(table: Table) -> None:
    put(table, *"abcdef")
    page = table.query("p", limit=3, descending=True)
    table.write([Delete("p", "d"), Delete("p", "b")])
    put(table, "cc", "dd")
    assert keys(table, cursor=page.cursor, descending=True) == ["cc", "c", "a"]


@pytest.mark.parametrize(
    "cursor",
    ["", "nonsense", "é", "bnVsbA", base64.urlsafe_b64encode(b'["","p"]').decode(), "W10", "WzFd", "\ud800"],
)
def test_a_cursor_that_is_not_ours_is_refused(table: Table, cursor: str) -> None:
    put(table, *"abc")
    with pytest.raises(ValueError, match="cursor"):
        table.query("p", cursor=cursor)


def test_a_cursor_of_another_partition_or_index_is_refused(table: Table) -> None:
    put(table, *"abc")
    cursor = table.query("p", limit=1).cursor
    assert cursor is not None
    with pytest.raises(ValueError, match="another query"):
        table.query("q", cursor=cursor)
    with pytest.raises(ValueError, match="another query"):
        table.query("p", cursor=cursor, index=Index.I1)


def test_a_page_of_no_rows_cannot_be_asked_for(table: Table) -> None:
    with pytest.raises(ValueError, match="at least 1"):
        table.query("p", limit=0)


@pytest.mark.parametrize("index", list(Index))
def test_an_index_holds_the_rows_that_have_its_pair(table: Table, index: Index) -> None:
    def item(sk: str, *pair: str) -> Item:
        return Item(pk="p" + sk, sk=sk, **({index.value: pair} if pair else {}))  # type: ignore[arg-type]

    table.write([Put(item(sk, *pair)) for sk, *pair in [("a", "x", "3"), ("b", "x", "1"), ("c", "y", "2"), ("d",)]])
    assert keys(table, "x", index=index) == ["b", "a"]
    assert keys(table, "x", index=index, descending=True) == ["a", "b"]
    assert keys(table, "x", index=index, low="2") == ["a"]
    assert keys(table, "x", index=index, prefix="1") == ["b"]
    assert table.query("y", index=index).items == (item("c", "y", "2"),)

    table.write([Put(item("a")), Put(item("b", "y", "9")), Delete("pc", "c")])
    assert keys(table, "x", index=index) == []
    assert keys(table, "y", index=index) == ["b"]


@pytest.mark.parametrize("descending", [False, True])
def test_index_pages_give_rows_of_equal_sort_keys_once(table: Table, descending: bool) -> None:
    for n in range(9):
        table.write([Put(Item(pk=f"p{n % 2}", sk=str(n), i2=("x", "same" if n < 7 else "zzz")))])
    found = walk(table, "x", index=Index.I2, limit=2, descending=descending)
    assert sorted(found) == [str(n) for n in range(9)]
    assert set(found[:2] if descending else found[-2:]) == {"7", "8"}


def test_an_expired_row_is_still_answered_with_its_ttl(table: Table) -> None:
    item = Item(pk="p", sk="a", ttl=1)
    table.write([Put(item)])
    assert table.get("p", "a") in (item, None)
