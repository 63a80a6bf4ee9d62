"""Prices and the bills made of them: plain arithmetic, held against figures worked out by hand."""

from __future__ import annotations

import pytest
from tests.benchmarks.meter import SOURCE

from ductor.app.model_bill import model_bill
from ductor.app.prices import ModelPrice, Prices, PricesError, Usage, bill, read_prices, total
from ductor.model.attempt import ModelUse


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
    assert set(SOURCE["prices"]) == set(Prices.__struct_fields__) - dated.keys() - {"models"}
    assert Prices().models == {}


def test_a_price_list_may_name_models() -> None:
    prices = read_prices('{"models": {"bedrock/claude": {"input_tokens": 3, "output_tokens": 15.5}}}')
    assert prices.models == {"bedrock/claude": ModelPrice(input_tokens=3, output_tokens=15.5)}
    uses = (
        ModelUse("openai", "claude", 1, 1_000, 10, 5),
        ModelUse("bedrock", "claude", 2, 2_000_000, 1_000, 5),
    )
    assert [(line.provider, line.amount) for line in model_bill(uses, prices)] == [
        ("bedrock", pytest.approx(6.0155)),
        ("openai", None),
    ]
    for_all = read_prices('{"models": {"claude": {"input_tokens": 1, "output_tokens": 0}}}')
    assert [line.amount for line in model_bill(uses, for_all)] == [2.0, 0.001]


@pytest.mark.parametrize("price", ["3", '{"input_tokens": 3}', '{"input_tokens": -1, "output_tokens": 1}'])
def test_half_a_price_of_a_model_is_refused(price: str) -> None:
    with pytest.raises(PricesError, match="Write it like"):
        read_prices(f'{{"models": {{"m": {price}}}}}')
