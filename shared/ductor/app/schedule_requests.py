"""Requests of operators about schedules: remembered by id, so that a repeat does nothing, and shown as audit."""

from __future__ import annotations

import hashlib
from typing import Final

import msgspec

from ductor.app.access import Caller
from ductor.app.control import check_texts, operation_hash
from ductor.app.headers import sort_time
from ductor.app.refusals import precondition
from ductor.app.schedule_rows import KEPT_S, schedule_pk
from ductor.model.json import JSON
from ductor.model.recurrence import ScheduleKey
from ductor.ports import Expect, Item, Put, Table

REQUEST_PREFIX: Final = "REQ#"
AUDIT_PREFIX: Final = "AUD#"


class ScheduleRequest(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A request that was applied: who asked for what, why, and what came of it. `at` is epoch ms."""

    request_id: str
    request_hash: str
    operation: str
    actor: str
    at: int
    reason: str = ""
    run_id: str = ""


class Requests:
    """Reads and writes the rows of one schedule's requests."""

    def __init__(self, table: Table) -> None:
        self._table = table

    def known(self, key: ScheduleKey, wanted: ScheduleRequest) -> ScheduleRequest | None:
        """The request with this id, if it was applied before.

        FAILED_PRECONDITION `REQUEST_ID_REUSED` when the id stands for another one.
        """
        item = self._table.get(schedule_pk(key), _sk(wanted.request_id))
        if item is None:
            return None
        found = decode_request(item)
        if found.request_hash != wanted.request_hash:
            message = f"the request_id {wanted.request_id!r} was used for another operation; use a new one"
            raise precondition("REQUEST_ID_REUSED", message, "request_id")
        return found


def new_request(
    caller: Caller, operation: str, request_id: str, reason: str, now: int, body: JSON = None
) -> ScheduleRequest:
    """The request of a caller. Refuses ids and reasons that are too long."""
    check_texts(request_id, reason)
    return ScheduleRequest(
        request_id=request_id,
        request_hash=operation_hash(operation, "", body),
        operation=operation,
        actor=caller.key_id,
        at=now,
        reason=reason,
    )


def request_puts(key: ScheduleKey, request: ScheduleRequest) -> tuple[Put, ...]:
    """The rows that say that a request was applied, once."""
    pk, body, ttl = schedule_pk(key), msgspec.json.encode(request), request.at // 1000 + KEPT_S
    mark = _sk(request.request_id)
    return (
        Put(Item(pk=pk, sk=mark, body=body, ttl=ttl), Expect.ABSENT),
        Put(Item(pk=pk, sk=f"{AUDIT_PREFIX}{sort_time(request.at)}#{mark}", body=body, ttl=ttl)),
    )


def decode_request(item: Item) -> ScheduleRequest:
    return msgspec.json.decode(item.body, type=ScheduleRequest)


def _sk(request_id: str) -> str:
    """Hashed: an id may hold anything, also what no key may."""
    return REQUEST_PREFIX + hashlib.sha256(request_id.encode("utf-8", "surrogatepass")).hexdigest()[:40]
