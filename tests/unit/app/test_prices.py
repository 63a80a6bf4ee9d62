"""Prices and the bills made of them: plain arithmetic, held against figures worked out by hand."""

from __future__ import annotations

import pytest
from tests.benchmarks.meter import SOURCE

from ductor.app.prices import Prices, PricesError, Usage, bill, read_prices, total


def test_every_kind_of_usage_has_a_line_and_a_price() -> None:
    one_of_each = Usage(**dict.fromkeys(Usage.__struct_fields__, 1))
    lines = bill(one_of_each, Prices())
    assert len(lines) == len(Usage.__struct_fields__)
    assert all(line.amount > 0 for line in lines)


@pytest.mark.parametrize(
    ("usage", "amount"),
    [
        (Usage(table_writes=1_000_000), 0.625),
        (Usage(table_reads=8_000_000), 1.0),
        (Usage(fifo_requests=2_000_000, queue_requests=1_000_000), 1.4),
        (Usage(invocations=5_000_000, gb_seconds=100), 1.00133334),
        (Usage(log_bytes=2_000_000_000), 1.0),
        (Usage(blob_puts=1_000, blob_gets=1_000), 0.0054),
        (Usage(), 0),
    ],
)
def test_a_bill_is_quantity_times_price(usage: Usage, amount: float) -> None:
    assert total(bill(usage, Prices())) == pytest.approx(amount)


def test_usages_add_up() -> None:
    usage = Usage(table_writes=2)
    usage.add(Usage(table_writes=3, traces=0.5))
    assert usage == Usage(table_writes=5, traces=0.5)


def test_a_price_list_is_the_built_in_one_but_for_what_it_says() -> None:
    prices = read_prices('{"region": "eu-central-1", "table_writes": 0.7625}')
    assert (prices.region, prices.table_writes, prices.table_reads) == ("eu-central-1", 0.7625, 0.125)
    assert read_prices("  ") == Prices()


@pytest.mark.parametrize(
    "text", ["{", '{"tabel_writes": 1}', '{"table_writes": -1}', '{"table_writes": "1"}', "[]", "1e999"]
)
def test_a_price_list_that_is_not_understood_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(PricesError, match="Write it like"):
        read_prices(text)


def test_the_built_in_list_is_that_of_the_dated_file() -> None:
    dated = {name: SOURCE[name] for name in ("as_of", "region", "currency")}
    assert Prices(**dated, **SOURCE["prices"]) == Prices()
    assert set(SOURCE["prices"]) == set(Prices.__struct_fields__) - dated.keys()
