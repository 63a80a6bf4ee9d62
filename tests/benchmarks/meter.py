"""Meters every request that the functions make to AWS, in AWS's own units, and the time that they would take there.

moto answers; what a request counts as is computed here from the sizes of items and messages. Rows are remembered as
they were, because an index is billed by what changes.
"""

from __future__ import annotations

import sys
import time
import tomllib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, TextIO
from unittest import mock

import msgspec
from botocore import xform_name
from botocore.client import BaseClient
from botocore.exceptions import ClientError
from moto.core.botocore_stubber import BotocoreStubber
from tests.benchmarks import units

from ductor.app.prices import Usage

SOURCE: dict[str, Any] = tomllib.loads((Path(__file__).parent / "prices.toml").read_text())
_KINDS = {"Put": "Item", "Delete": "Key", "ConditionCheck": "Key"}


class CountingStream:
    """Standard output as CloudWatch would take it in: bytes of lines, and an overhead for each."""

    def __init__(self, meter: Meter) -> None:
        self._meter = meter

    def write(self, text: str) -> int:
        overhead = text.count("\n") * SOURCE["assumptions"]["log_event_bytes"]
        self._meter.logged(len(text.encode()) + overhead)
        return len(text)

    def flush(self) -> None:
        """Nothing is held back."""


class Meter:
    """Counts per function; what is asked for outside of one is the test's own and free."""

    def __init__(self) -> None:
        self.usage: dict[str, Usage] = defaultdict(Usage)
        self.requests: Counter[tuple[str, str, str]] = Counter()
        self._rows: dict[tuple[str, str], units.Raw] = {}
        self._function = ""
        self._waited_ms = 0.0
        self._answering = 0.0

    def forget(self) -> None:
        """Begin to count anew. Rows stay known."""
        self.usage.clear()
        self.requests.clear()

    def total(self) -> Usage:
        """The usage of all functions."""
        whole = Usage()
        for usage in self.usage.values():
            whole.add(usage)
        return whole

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Until the end of the block all clients of this process are metered."""
        with ExitStack() as stack:
            stack.enter_context(mock.patch.object(BaseClient, "_make_api_call", self._observed()))
            stack.enter_context(mock.patch.object(BotocoreStubber, "__call__", self._answered()))
            stream: TextIO = CountingStream(self)  # type: ignore[assignment]
            stack.enter_context(mock.patch.object(sys, "stdout", stream))
            yield

    def invoke(self, function: str, memory: int, call: Callable[[], Any]) -> Any:
        """One invocation: its request, its lines of the platform, its memory (MB) for the time it takes."""
        assumed = SOURCE["assumptions"]
        self._function, self._waited_ms, self._answering = function, 0.0, 0.0
        began = time.thread_time()
        try:
            return call()
        finally:
            cpu_s = (time.thread_time() - began - self._answering) * max(1.0, assumed["cpu_mb"] / memory)
            usage = self.usage[function]
            usage.invocations += 1
            usage.gb_seconds += (cpu_s + self._waited_ms / 1000) * memory / 1024
            usage.log_bytes += assumed["platform_log_bytes"]
            usage.traces += assumed["traced_share"]
            self._function = ""

    def asked_for(self) -> None:
        """A request reached the gateway, which logs it."""
        self.usage["api"].add(Usage(api_requests=1, log_bytes=SOURCE["assumptions"]["access_log_bytes"]))

    def logged(self, size: int) -> None:
        """A function wrote that much to its log."""
        if self._function:
            self.usage[self._function].log_bytes += size

    def _answered(self) -> Callable[..., Any]:
        """moto's own time is not the function's."""
        answer = BotocoreStubber.__call__

        def timed(stubber: BotocoreStubber, *args: Any, **kwargs: Any) -> Any:
            began = time.thread_time()
            try:
                return answer(stubber, *args, **kwargs)
            finally:
                self._answering += time.thread_time() - began

        return timed

    def _observed(self) -> Callable[..., Any]:
        call = BaseClient._make_api_call

        def observed(client: Any, operation: str, arguments: dict[str, Any]) -> Any:
            self._waited_ms += SOURCE["latency_ms"].get(operation, 0) if self._function else 0
            handle = getattr(self, f"_on_{xform_name(operation)}", None)
            try:
                answer = call(client, operation, arguments)
            except ClientError:
                if handle is not None:
                    handle(arguments, None)
                raise
            if handle is not None:
                handle(arguments, answer)
            elif self._function:
                raise AssertionError(f"nobody says what {operation} costs")
            return answer

        return observed

    def _count(self, operation: str, what: str, **quantities: float) -> None:
        if self._function:
            self.requests[self._function, operation, what] += 1
            self.usage[self._function].add(Usage(**quantities))

    def _on_put_item(self, arguments: Mapping[str, Any], answer: Any) -> None:
        self._write("PutItem", arguments["Item"], arguments["Item"], done=answer is not None)

    def _on_delete_item(self, arguments: Mapping[str, Any], answer: Any) -> None:
        self._write("DeleteItem", arguments["Key"], None, done=answer is not None)

    def _on_batch_write_item(self, arguments: Mapping[str, Any], answer: Any) -> None:
        for requests in arguments["RequestItems"].values():
            for request in requests:
                self._write("BatchDelete", request["DeleteRequest"]["Key"], None, done=answer is not None)

    def _on_transact_write_items(self, arguments: Mapping[str, Any], answer: Any) -> None:
        for part in arguments["TransactItems"]:
            ((kind, request),) = part.items()
            row = request[_KINDS[kind]]
            if kind == "ConditionCheck":
                before = self._rows.get(_key(row))
                self._count(kind, _kind(row), table_writes=units.write_units(before, None, transaction=True))
            else:
                after = row if kind == "Put" else None
                self._write(f"Transact{kind}", row, after, done=answer is not None, transaction=True)

    def _write(
        self, operation: str, row: units.Raw, after: units.Raw | None, *, done: bool, transaction: bool = False
    ) -> None:
        before = self._rows.get(_key(row))
        written = units.write_units(before, after, transaction=transaction)
        entries = units.index_units(before, after) if done else 0
        self._count(operation, _kind(row), table_writes=written + entries)
        if entries and self._function:
            self.requests[self._function, "index", _kind(row)] += entries
        if done:
            self._rows.pop(_key(row), None)
            if after is not None:
                self._rows[_key(row)] = after

    def _on_get_item(self, arguments: Mapping[str, Any], answer: Any) -> None:
        found = (answer or {}).get("Item")
        read = units.read_units([units.item_bytes(found)], consistent=arguments.get("ConsistentRead", False))
        self._count("GetItem", _kind(arguments["Key"]), table_reads=read)

    def _on_batch_get_item(self, arguments: Mapping[str, Any], answer: Any) -> None:
        for name, request in arguments["RequestItems"].items():
            found = [units.item_bytes(row) for row in (answer or {}).get("Responses", {}).get(name, ())]
            absent = [0] * (len(request["Keys"]) - len(found))
            read = units.read_units(found + absent, consistent=request.get("ConsistentRead", False))
            self._count("BatchGetItem", _kind(request["Keys"][0]), table_reads=read)

    def _on_query(self, arguments: Mapping[str, Any], answer: Any) -> None:
        sizes = [units.item_bytes(row) for row in (answer or {}).get("Items", ())]
        consistent = arguments.get("ConsistentRead", False)
        read = units.read_units(sizes, consistent=consistent, together=True)
        self._count("Query", arguments.get("IndexName", "table"), table_reads=read)

    def _on_send_message(self, arguments: Mapping[str, Any], answer: Any) -> None:
        self._send("SendMessage", arguments["QueueUrl"], [arguments["MessageBody"]])

    def _on_send_message_batch(self, arguments: Mapping[str, Any], answer: Any) -> None:
        bodies = [entry["MessageBody"] for entry in arguments["Entries"]]
        self._send("SendMessageBatch", arguments["QueueUrl"], bodies)

    def _send(self, operation: str, url: str, bodies: list[str]) -> None:
        self._count(operation, url.rsplit("/", 1)[1], **of_queue(url, units.queue_requests(bodies)))

    def _on_change_message_visibility_batch(self, arguments: Mapping[str, Any], answer: Any) -> None:
        self._send("ChangeMessageVisibilityBatch", arguments["QueueUrl"], [])

    def _on_create_schedule(self, arguments: Mapping[str, Any], answer: Any) -> None:
        self._count("CreateSchedule", "", schedules=1)

    def _on_put_events(self, arguments: Mapping[str, Any], answer: Any) -> None:
        sizes = [len(entry["Detail"].encode()) for entry in arguments["Entries"]]
        self._count("PutEvents", "", bus_events=sum(max(1, -(-size // units.CHUNK_BYTES)) for size in sizes))

    def _on_put_object(self, arguments: Mapping[str, Any], answer: Any) -> None:
        self._count("PutObject", "", blob_puts=1)

    def _on_get_object(self, arguments: Mapping[str, Any], answer: Any) -> None:
        self._count("GetObject", "", blob_gets=1)

    def received(self, function: str, url: str, records: list[Mapping[str, Any]]) -> None:
        """What Lambda does for a batch: a receive and a delete per ten messages, more when they are large."""
        for start in range(0, len(records), 10):
            bodies = [record["body"] for record in records[start : start + 10]]
            self.usage[function].add(Usage(**of_queue(url, units.queue_requests(bodies) + 1)))

    def stored_bytes(self) -> int:
        """All rows, with the 100 bytes that DynamoDB counts for each in storage."""
        return sum(units.item_bytes(row) + 100 for row in self._rows.values())


def of_queue(url: str, requests: int) -> dict[str, float]:
    """Requests to a queue, by its kind."""
    return {"fifo_requests" if url.endswith(".fifo") else "queue_requests": requests}


def per(usage: Usage, number: float) -> Usage:
    """The usage divided by a number."""
    return Usage(**{name: value / number for name, value in msgspec.structs.asdict(usage).items()})


def _key(row: units.Raw) -> tuple[str, str]:
    return row["pk"]["S"], row["sk"]["S"]


def _kind(row: units.Raw) -> str:
    """`HEAD`, `A`, `T`, …: what kind of row it is."""
    return str(row["sk"]["S"]).split("#", 1)[0]
