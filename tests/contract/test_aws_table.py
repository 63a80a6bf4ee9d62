"""What DynamoDB does that no other table does: throttling, rows held by transactions, lost answers, short pages."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Iterator
from typing import Any
from unittest import mock

import pytest
from botocore.exceptions import ClientError, ReadTimeoutError
from pynamodb.connection.base import Connection
from pynamodb.exceptions import GetError
from tests.contract.moto_backend import Emulator

from ductor.adapters.aws.faults import AwsRefusedError
from ductor.adapters.aws.rows import item_of
from ductor.adapters.aws.table import TRIES, DynamoTable
from ductor.adapters.aws.words import WORDS
from ductor.ports import Check, Conflict, Delete, Expect, Index, Item, ItemTooLargeError, Op, Put, UnavailableError
from ductor.testing.memory import VirtualClock

ROW = Item(pk="p", sk="a", version=2, body=b'{"ours":1}')
MINE = Put(ROW, 1)
TWO: list[Op] = [MINE, Put(Item(pk="p", sk="b"))]


@pytest.fixture
def table() -> Iterator[DynamoTable]:
    emulator = Emulator(VirtualClock())
    yield emulator.table
    emulator.close()


def client_error(code: str, *, status: int = 400, retries: int = 0, message: str = "", **more: Any) -> ClientError:
    metadata = {"HTTPStatusCode": status, "RetryAttempts": retries}
    response: Any = {"Error": {"Code": code, "Message": message}, "ResponseMetadata": metadata, **more}
    return ClientError(response, "Operation")


def canceled(*codes: str, **more: Any) -> ClientError:
    return client_error("TransactionCanceledException", CancellationReasons=[{"Code": code, **more} for code in codes])


def answering(*answers: Any) -> Any:
    """DynamoDB gives these answers in turn, the last one for ever; exceptions are raised."""
    left = list(answers)

    def dispatch(self: Connection, operation: str, arguments: Any) -> Any:
        answer = left.pop(0) if len(left) > 1 else left[0]
        if isinstance(answer, BaseException):
            raise answer
        return answer

    return mock.patch.object(Connection, "dispatch", dispatch)


@pytest.mark.parametrize(
    "error",
    [
        client_error("ProvisionedThroughputExceededException"),
        client_error("ThrottlingException"),
        client_error("RequestLimitExceeded"),
        client_error("SomethingNew", status=503),
        ReadTimeoutError(endpoint_url="x"),
    ],
)
def test_a_busy_or_silent_table_is_unavailable(table: DynamoTable, error: Exception) -> None:
    with answering(error):
        for call in (lambda: table.get("p", "a"), lambda: table.query("p"), lambda: table.batch_get([("p", "a")])):
            with pytest.raises(UnavailableError):
                call()
        with pytest.raises(UnavailableError):
            table.remove([("p", "a")])
        for ops in ([MINE], TWO, [Delete("p", "a")]):
            with pytest.raises(UnavailableError):
                table.write(ops)


def test_a_missing_permission_is_told_as_such(table: DynamoTable) -> None:
    with answering(client_error("AccessDeniedException")), pytest.raises(AwsRefusedError, match="AccessDenied"):
        table.get("p", "a")


@pytest.mark.parametrize("busy", [canceled("None", "TransactionConflict"), canceled("ThrottlingError", "None")])
def test_rows_held_by_another_transaction_are_tried_again(table: DynamoTable, busy: ClientError) -> None:
    with answering(busy, busy, {}):
        assert table.write(TWO) is None
    with answering(busy), pytest.raises(UnavailableError):
        table.write(TWO)


@pytest.mark.parametrize("code", ["TransactionConflictException", "TransactionInProgressException"])
def test_a_row_held_by_a_transaction_is_tried_again(table: DynamoTable, code: str) -> None:
    with answering(*[client_error(code)] * (TRIES - 1), {}):
        assert table.write([MINE]) is None


def test_a_conflict_is_told_only_when_all_conditions_were_looked_at(table: DynamoTable) -> None:
    """Else the first lost condition could be one that another transaction still hides."""
    hidden = canceled("TransactionConflict", "ConditionalCheckFailed")
    with answering(hidden, canceled("ConditionalCheckFailed", "ConditionalCheckFailed")):
        assert table.write(TWO) == Conflict(0, None)


def test_checks_that_always_hold_do_not_shift_the_index_of_a_conflict(table: DynamoTable) -> None:
    ops: list[Op] = [Check("p", "x", Expect.ANY), Put(Item(pk="p", sk="b")), Put(ROW, 7)]
    assert table.write(ops) == Conflict(2, None)
    assert table.write([ops[0], ops[2]]) == Conflict(1, None)


def test_a_conflict_costs_no_read(table: DynamoTable) -> None:
    table.write([Put(ROW)])
    with mock.patch.object(Connection, "get_item", side_effect=AssertionError("a read")):
        assert table.write([Put(ROW, Expect.ABSENT)]) == Conflict(0, ROW)
        assert table.write([Put(Item(pk="p", sk="b")), Delete("p", "a", 9)]) == Conflict(1, ROW)
        assert table.write([Put(Item(pk="p", sk="b")), Check("p", "a", Expect.ABSENT)]) == Conflict(1, ROW)


def test_our_own_write_whose_answer_was_lost_is_no_conflict(table: DynamoTable) -> None:
    ours = {"pk": {"S": "p"}, "sk": {"S": "a"}, "version": {"N": "2"}, "body": {"B": ROW.body}}
    lost = "ConditionalCheckFailedException"
    with answering(client_error(lost, retries=1, Item=ours)):
        assert table.write([MINE]) is None
    with answering(client_error(lost, retries=0, Item=ours)):
        assert table.write([MINE]) == Conflict(0, ROW)
    theirs = {**ours, "body": {"B": b'{"theirs":1}'}}
    with answering(client_error(lost, retries=1, Item=theirs)):
        assert table.write([MINE]) is not None


@pytest.mark.parametrize("ops", [[MINE], TWO])
def test_a_size_that_only_dynamodb_finds_too_large_is_told_as_such(table: DynamoTable, ops: list[Op]) -> None:
    message = "Item size has exceeded the maximum allowed size"
    alone = client_error("ValidationException", message=message)
    together = canceled("ValidationError", "None", Message=message)
    with answering(alone if len(ops) == 1 else together), pytest.raises(ItemTooLargeError):
        table.write(ops)


def test_keys_that_were_not_processed_are_read_again(table: DynamoTable) -> None:
    raw = {"pk": {"S": "p"}, "sk": {"S": "a"}, "version": {"N": "1"}, "body": {"B": b"{}"}}
    left = {"ductor": {"Keys": [{"pk": {"S": "p"}, "sk": {"S": "b"}}]}}
    first = {"Responses": {"ductor": [raw]}, "UnprocessedKeys": left}
    second = {"Responses": {"ductor": [{**raw, "sk": {"S": "b"}}]}, "UnprocessedKeys": {}}
    with answering(first, second):
        assert set(table.batch_get([("p", "a"), ("p", "b")])) == {("p", "a"), ("p", "b")}
    with answering(first), pytest.raises(UnavailableError, match="throttled"):
        table.batch_get([("p", "a"), ("p", "b")])


def test_rows_that_were_not_removed_are_removed_again(table: DynamoTable) -> None:
    left = {"UnprocessedItems": {"ductor": [{"DeleteRequest": {"Key": {"pk": {"S": "p"}, "sk": {"S": "b"}}}}]}}
    with answering(left, {}):
        table.remove([("p", "a"), ("p", "b")])
    with answering(left), pytest.raises(UnavailableError, match="throttled"):
        table.remove([("p", "a"), ("p", "b")])


def test_a_page_is_filled_across_answers_of_a_megabyte(table: DynamoTable) -> None:
    for number in range(8):
        table.write([Put(Item(pk="p", sk=str(number), body=_incompressible(300_000, number)))])
    page = table.query("p", limit=7)
    assert [item.sk for item in page.items] == [str(number) for number in range(7)]
    assert [item.sk for item in table.query("p", limit=7, cursor=page.cursor).items] == ["7"]


def test_bodies_of_600_bytes_and_more_are_deflated_and_come_back_whole(table: DynamoTable) -> None:
    for body in (b"x" * 5_000, zlib.compress(b"y" * 5_000), _incompressible(5_000, 1), b"x" * 1_024, b""):
        table.write([Put(Item(pk="p", sk="a", body=body))])
        found = table.get("p", "a")
        assert found is not None
        assert found.body == body
    table.write([Put(Item(pk="p", sk="a", body=b"x" * 5_000))])
    with mock.patch("ductor.adapters.aws.table.item_of", side_effect=lambda raw: raw):
        raw: Any = table.get("p", "a")
    assert len(raw["body"]["B"]) < 100
    assert raw["packed"]["S"] == "w1"


def test_a_body_deflated_by_itself_is_read_too() -> None:
    raw = {"pk": {"S": "p"}, "sk": {"S": "a"}, "version": {"N": "3"}, "packed": {"S": "z"}}
    assert item_of({**raw, "body": {"B": zlib.compress(b"x" * 5_000)}}) == Item(
        pk="p", sk="a", version=3, body=b"x" * 5_000
    )


def test_the_words_that_rows_were_deflated_against_are_as_they_were() -> None:
    """Rows in users' tables cannot be read without them: a new text needs a new mark, and this one stays."""
    assert hashlib.sha256(WORDS).hexdigest() == "b70300fff66806c9dd68d941420a4ef9c55903bae011545ffe29bd21bd98966f"


def test_an_index_answers_keys_without_reading_the_rows(table: DynamoTable) -> None:
    table.write([Put(Item(pk="p", sk="a", version=7, body=b"large", i1=("x", "1"), i2=("y", "2")))])
    assert table.query("x", index=Index.I1).items == (Item(pk="p", sk="a", i1=("x", "1")),)


def test_library_errors_keep_their_cause(table: DynamoTable) -> None:
    with answering(GetError("wrapped", client_error("ThrottlingException"))), pytest.raises(UnavailableError):
        table.get("p", "a")


def test_a_transaction_carries_a_token_so_that_the_library_may_repeat_it(table: DynamoTable) -> None:
    seen: list[Any] = []
    client = table._connection.client

    def note(params: Any, **_: Any) -> None:
        seen.append(params)

    client.meta.events.register("before-call.dynamodb.TransactWriteItems", note)
    try:
        table.write([Put(Item(pk="p", sk="a")), Put(Item(pk="p", sk="b"))])
    finally:
        client.meta.events.unregister("before-call.dynamodb.TransactWriteItems", note)
    assert b"ClientRequestToken" in seen[0]["body"]


def _incompressible(size: int, seed: int) -> bytes:
    import random

    return random.Random(seed).randbytes(size)
