"""What AWS bills: quantities by kind, a dated list of prices, and the bill that follows. Arithmetic, no rounding."""

from __future__ import annotations

from typing import Annotated, Final

import msgspec

MILLION: Final = 1_000_000
GB: Final = 1_000_000_000

Price = Annotated[float, msgspec.Meta(ge=0)]


class PricesError(ValueError):
    """A price list that cannot be read; the message says which value and how to write it."""


class ModelPrice(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a million tokens of a language model cost."""

    input_tokens: Price
    output_tokens: Price


class Prices(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """List prices in `currency`, per million unless the name says otherwise, as of a day, in a region.

    The defaults are those of us-east-1. No free tier, no discounts, no tax. `models` are by `provider/model`, or by the
    model's name alone; none is built in, because they change often and by contract.
    """

    as_of: str = "2026-09-28"
    region: str = "us-east-1"
    currency: str = "USD"
    table_writes: Price = 0.625
    table_reads: Price = 0.125
    table_gb_month: Price = 0.25
    fifo_requests: Price = 0.50
    queue_requests: Price = 0.40
    invocations: Price = 0.20
    gb_second: Price = 0.0000133334
    api_requests: Price = 1.00
    schedules: Price = 1.00
    bus_events: Price = 1.00
    blob_puts: Price = 5.00
    blob_gets: Price = 0.40
    log_gb: Price = 0.50
    traces: Price = 5.00
    models: dict[str, ModelPrice] = {}


def read_prices(text: str) -> Prices:
    """The default list with the values of a JSON object over it; empty text is the default. Raises PricesError."""
    if not text.strip():
        return Prices()
    try:
        return msgspec.json.decode(text, type=Prices)
    except (msgspec.DecodeError, msgspec.ValidationError) as fault:
        example = '{"as_of": "2027-01-31", "region": "eu-central-1", "table_writes": 0.7625}'
        raise PricesError(f"the price list is not understood: {fault}. Write it like {example}") from fault


class Usage(msgspec.Struct, kw_only=True):
    """Billed quantities: units and requests as AWS rounds them, bytes and GB-seconds as they are."""

    table_writes: float = 0
    table_reads: float = 0
    fifo_requests: float = 0
    queue_requests: float = 0
    invocations: float = 0
    gb_seconds: float = 0
    api_requests: float = 0
    schedules: float = 0
    bus_events: float = 0
    blob_puts: float = 0
    blob_gets: float = 0
    log_bytes: float = 0
    traces: float = 0

    def add(self, other: Usage) -> None:
        """Take the quantities of `other` on top."""
        for name in self.__struct_fields__:
            setattr(self, name, getattr(self, name) + getattr(other, name))


class Line(msgspec.Struct, frozen=True):
    """One line of a bill: `quantity` of `unit` from `service` for `amount`."""

    service: str
    unit: str
    quantity: float
    amount: float


def bill(usage: Usage, prices: Prices) -> tuple[Line, ...]:
    """A line per kind, in a fixed order, those of nothing included."""
    return tuple(
        Line(service, unit, getattr(usage, kind), getattr(usage, kind) * getattr(prices, price) / per)
        for kind, (service, unit, price, per) in _LINES.items()
    )


def total(lines: tuple[Line, ...]) -> float:
    """What all lines cost together."""
    return sum(line.amount for line in lines)


_LINES: Final[dict[str, tuple[str, str, str, int]]] = {
    "table_writes": ("DynamoDB", "write request units", "table_writes", MILLION),
    "table_reads": ("DynamoDB", "read request units", "table_reads", MILLION),
    "fifo_requests": ("SQS", "FIFO requests", "fifo_requests", MILLION),
    "queue_requests": ("SQS", "standard requests", "queue_requests", MILLION),
    "invocations": ("Lambda", "requests", "invocations", MILLION),
    "gb_seconds": ("Lambda", "GB-seconds", "gb_second", 1),
    "api_requests": ("API Gateway", "requests", "api_requests", MILLION),
    "schedules": ("EventBridge Scheduler", "invocations", "schedules", MILLION),
    "bus_events": ("EventBridge", "events", "bus_events", MILLION),
    "blob_puts": ("S3", "PUT requests", "blob_puts", MILLION),
    "blob_gets": ("S3", "GET requests", "blob_gets", MILLION),
    "log_bytes": ("CloudWatch Logs", "bytes", "log_gb", GB),
    "traces": ("X-Ray", "traces", "traces", MILLION),
}
