"""Rows under (pk, sk) in DynamoDB, with conditional, all-or-nothing writes. Never looks into a row's body."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final

from botocore.exceptions import ClientError
from pynamodb.connection.base import Connection
from pynamodb.expressions.condition import Condition as Expression

from ductor.adapters import rules
from ductor.adapters.aws import faults
from ductor.adapters.aws.rows import Row, index_name, item_of, row_class, row_of
from ductor.ports import (
    Check,
    Condition,
    Conflict,
    Delete,
    Expect,
    Index,
    Item,
    ItemTooLargeError,
    Op,
    Page,
    Put,
    UnavailableError,
)

TRIES: Final = 6
"""How often a write is tried whose rows another transaction holds, and a read that came back incomplete."""

_FIRST_PAUSE_S: Final = 0.025
_KEYS_PER_READ: Final = 100
_KEYS_PER_REMOVAL: Final = 25
_ALL_OLD: Final = "ALL_OLD"
_NO_REASON: Final = "None"


class DynamoTable:
    """`ports.Table` on DynamoDB. Index queries lag, and answer only the keys and the index's own pair of each row."""

    def __init__(self, name: str, *, pause: Callable[[float], None] = time.sleep) -> None:
        self._name = name
        self._model: type[Row] = row_class(name)
        self._pause = pause

    def create(self) -> None:
        """Make the table, for emulators; on AWS the template does. Raises AwsRefusedError when it exists."""
        with faults.translated():
            self._model.create_table(wait=True)

    def get(self, pk: str, sk: str) -> Item | None:
        rules.check_key(pk, sk)
        with faults.translated():
            found = self._connection.get_item(self._name, pk, sk, consistent_read=True)
        return item_of(found["Item"]) if "Item" in found else None

    def batch_get(self, keys: Sequence[tuple[str, str]]) -> dict[tuple[str, str], Item]:
        for key in keys:
            rules.check_key(*key)
        unique = list(dict.fromkeys(keys))
        found: dict[tuple[str, str], Item] = {}
        for start in range(0, len(unique), _KEYS_PER_READ):
            for item in self._read_all(unique[start : start + _KEYS_PER_READ]):
                found[item.pk, item.sk] = item
        return found

    def query(
        self,
        pk: str,
        *,
        prefix: str = "",
        low: str | None = None,
        high: str | None = None,
        index: Index | None = None,
        limit: int = 100,
        cursor: str | None = None,
        descending: bool = False,
    ) -> Page:
        rules.check_limit(limit)
        rules.sort_bounds(prefix, low, high)
        start = _start_key(index, pk, cursor) if cursor is not None else None
        if low is not None and high is not None and low.encode() > high.encode():
            return Page(())  # DynamoDB refuses such a range
        items = self._read_pages(
            start,
            limit + 1,  # one more tells whether there is a next page
            hash_key=pk,
            range_key_condition=_range(self._sort_attribute(index), prefix, low, high),
            consistent_read=index is None,
            index_name=None if index is None else index_name(index.value),
            scan_index_forward=not descending,
        )
        if len(items) <= limit:
            return Page(tuple(items))
        return Page(tuple(items[:limit]), rules.encode_cursor(index, pk, rules.position_of(items[limit - 1], index)))

    def write(self, ops: Sequence[Op]) -> Conflict | None:
        rules.check_ops(ops)
        bearing = [(place, op) for place, op in enumerate(ops) if not _is_empty(op)]
        if not bearing:
            return None
        if len(bearing) == 1:
            return self._alone(*bearing[0])
        return self._together(bearing)

    def remove(self, keys: Sequence[tuple[str, str]]) -> None:
        for key in keys:
            rules.check_key(*key)
        unique = list(dict.fromkeys(keys))
        for start in range(0, len(unique), _KEYS_PER_REMOVAL):
            self._remove_all(unique[start : start + _KEYS_PER_REMOVAL])

    @property
    def _connection(self) -> Connection:
        return self._model._get_connection().connection

    def _read_all(self, keys: Sequence[tuple[str, str]]) -> Iterator[Item]:
        wanted: list[Any] = [{"pk": pk, "sk": sk} for pk, sk in keys]
        for pause in self._pauses():
            with faults.translated():
                found = self._connection.batch_get_item(self._name, wanted, consistent_read=True)
            yield from map(item_of, found["Responses"].get(self._name, ()))
            left = found.get("UnprocessedKeys", {}).get(self._name, {}).get("Keys", ())
            if not left:
                return
            wanted = [{name: value["S"] for name, value in key.items()} for key in left]
            pause()
        raise UnavailableError(f"{len(wanted)} rows could not be read: the table is throttled")

    def _remove_all(self, keys: Sequence[tuple[str, str]]) -> None:
        left = [{"DeleteRequest": {"Key": {"pk": {"S": pk}, "sk": {"S": sk}}}} for pk, sk in keys]
        for pause in self._pauses():
            with faults.translated():
                answer = self._connection.dispatch("BatchWriteItem", {"RequestItems": {self._name: left}})
            left = answer.get("UnprocessedItems", {}).get(self._name, [])
            if not left:
                return
            pause()
        raise UnavailableError(f"{len(left)} rows could not be removed: the table is throttled")

    def _read_pages(self, start: Mapping[str, Any] | None, wanted: int, **how: Any) -> list[Item]:
        """Up to that many rows. A single answer of DynamoDB ends at 1 MB whatever was asked for."""
        items: list[Item] = []
        while len(items) < wanted:
            with faults.translated():
                found = self._connection.query(self._name, exclusive_start_key=start, limit=wanted - len(items), **how)
            items.extend(map(item_of, found["Items"]))
            start = found.get("LastEvaluatedKey")
            if start is None:
                break
        return items

    def _sort_attribute(self, index: Index | None) -> Any:
        return getattr(self._model, "sk" if index is None else f"{index.value}sk")

    def _alone(self, place: int, op: Op) -> Conflict | None:
        """A write of one row needs no transaction, which would cost twice as much; a lone check is a read."""
        if isinstance(op, Check):
            stored = self.get(op.pk, op.sk)
            return None if rules.holds(op.expect, stored.version if stored else None) else Conflict(place, stored)
        operation = "PutItem" if isinstance(op, Put) else "DeleteItem"
        request = self._request(op)
        for pause in self._pauses():
            with faults.translated():
                try:
                    self._connection.dispatch(operation, dict(request))
                except ClientError as error:
                    code = faults.code_of(error)
                    if code == faults.CONDITION_LOST:
                        return _lost(place, op, error)
                    if code not in faults.IN_THE_WAY:
                        raise
                else:
                    return None
            pause()
        raise UnavailableError("another transaction held the row for too long")

    def _together(self, bearing: Sequence[tuple[int, Op]]) -> Conflict | None:
        items = [{_KINDS[type(op)]: self._request(op)} for _, op in bearing]
        for pause in self._pauses():
            with faults.translated():
                try:
                    self._connection.dispatch("TransactWriteItems", {"TransactItems": items})
                except ClientError as error:
                    code = faults.code_of(error)
                    if code == faults.TRANSACTION_CANCELED:
                        conflict = _verdict(bearing, faults.response_of(error).get("CancellationReasons", ()))
                        if conflict is not None:
                            return conflict
                    elif code not in faults.IN_THE_WAY:
                        raise
                else:
                    return None
            pause()
        raise UnavailableError("other transactions held the rows for too long")

    def _request(self, op: Op) -> dict[str, Any]:
        condition = _expression(op.expect)
        if isinstance(op, Put):
            return row_of(self._model, op.item).get_save_kwargs_from_instance(condition, _ALL_OLD)
        return self._connection.get_operation_kwargs(
            self._name, op.pk, op.sk, condition=condition, return_values_on_condition_failure=_ALL_OLD
        )

    def _pauses(self) -> Iterator[Callable[[], None]]:
        """One per try: what to do before the next. The longest possible wait doubles; a random part of it is taken."""
        for number in range(TRIES - 1):
            longest = _FIRST_PAUSE_S * 2**number
            yield partial(self._pause, random.uniform(longest / 2, longest))
        yield _go_on


def _go_on() -> None:
    """After the last try there is nothing to wait for."""


_KINDS: Final = {Put: "Put", Delete: "Delete", Check: "ConditionCheck"}


def _is_empty(op: Op) -> bool:
    """A check that always holds asks for nothing, and DynamoDB has no form for it."""
    return isinstance(op, Check) and op.expect is Expect.ANY


def _expression(expect: Condition) -> Expression | None:
    if expect is Expect.ANY:
        return None
    if expect is Expect.ABSENT:
        return Row.pk.does_not_exist()
    if expect is Expect.PRESENT:
        return Row.pk.exists()
    return Row.version == expect


def _range(attribute: Any, prefix: str, low: str | None, high: str | None) -> Any:
    if prefix:
        return attribute.startswith(prefix)
    if low and high is not None:
        return attribute.between(low, high)
    if low:
        return attribute >= low
    return None if high is None else attribute <= high


def _start_key(index: Index | None, pk: str, cursor: str) -> dict[str, Any]:
    """Where to go on. The row itself need not exist any more."""
    position = rules.decode_cursor(cursor, index, pk)
    if index is None:
        return {"pk": {"S": pk}, "sk": {"S": position[0]}}
    sort, row_pk, row_sk = position
    names = {f"{index.value}pk": pk, f"{index.value}sk": sort, "pk": row_pk, "sk": row_sk}
    return {name: {"S": value} for name, value in names.items()}


def _lost(place: int, op: Op, error: ClientError) -> Conflict | None:
    raw = faults.response_of(error).get("Item")
    current = item_of(raw) if raw else None
    if isinstance(op, Put) and current == op.item and faults.was_repeated(error):
        # An earlier copy of this very request succeeded and its answer was lost: the row in the way is our own.
        return None
    return Conflict(place, current)


def _verdict(bearing: Sequence[tuple[int, Op]], reasons: Sequence[Mapping[str, Any]]) -> Conflict | None:
    """The first lost condition; None when the transaction may simply be tried again.

    While any row is held by another transaction nobody knows which condition is the first to be lost.
    """
    codes = [reason.get("Code", _NO_REASON) for reason in reasons]
    if "ValidationError" in codes or "ItemCollectionSizeLimitExceeded" in codes:
        told = next(reason for reason in reasons if reason.get("Code") not in (None, _NO_REASON))
        message = str(told.get("Message", ""))
        if "size" in message.lower():
            raise ItemTooLargeError(message)
        raise faults.AwsRefusedError(str(told["Code"]), message)
    if any(code not in (_NO_REASON, "ConditionalCheckFailed") for code in codes):
        return None
    for (place, _), reason in zip(bearing, reasons, strict=True):
        if reason.get("Code") == "ConditionalCheckFailed":
            raw = reason.get("Item")
            return Conflict(place, item_of(raw) if raw else None)
    return None
