"""Runs that an event should have started and that were refused: kept for a month, where an operator finds them."""

from __future__ import annotations

from typing import Final

import msgspec

from ductor.app.access import Caller, Scope, require
from ductor.app.cursors import binding, page_size, seal, unseal
from ductor.app.headers import sort_time
from ductor.model.errors import Violation, clip
from ductor.ports import Item, Put, Table

KEPT_MS: Final = 30 * 86_400_000
MAX_FAULTS: Final = 20
MAX_TEXT: Final = 512


class RefusedStart(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """One refusal. `at` is when the event was received, epoch ms; `depth` its causation depth.

    `run_id` is the id that the run would have had.
    """

    at: int
    run_id: str
    family_slug: str
    definition_id: str
    environment: str
    event_name: str
    event_id: str
    correlation_key: str = ""
    depth: int = 0
    code: str
    message: str
    errors: tuple[Violation, ...] = ()


class RefusedPage(msgspec.Struct, frozen=True):
    """One page, newest first; `next_cursor` is None on the last one."""

    items: tuple[RefusedStart, ...]
    next_cursor: str | None


class RefusedStarts:
    """The rows `XS#<tenant>`/`<received at>#<run id>`: recording the same refusal again changes nothing."""

    def __init__(self, table: Table) -> None:
        self._table = table

    def record(self, tenant: str, refused: RefusedStart) -> None:
        """Durable when this returns. What is long is cut."""
        clipped = msgspec.structs.replace(
            refused,
            message=clip(refused.message, MAX_TEXT),
            errors=tuple(_clipped(one) for one in refused.errors[:MAX_FAULTS]),
        )
        row = Item(
            pk=f"XS#{tenant}",
            sk=f"{sort_time(refused.at)}#{refused.run_id}",
            body=msgspec.json.encode(clipped),
            ttl=(refused.at + KEPT_MS) // 1000,
        )
        self._table.write((Put(row),))

    def list(self, caller: Caller, limit: int | None, cursor: str | None) -> RefusedPage:
        """The refusals of the caller's tenant, of the last 30 days."""
        require(caller, Scope.WORKFLOW_READ)
        size = page_size(limit)
        bound_to = binding(caller.tenant, ["refused starts"])
        before = unseal(bound_to, cursor)
        page = self._table.query(
            f"XS#{caller.tenant}", low="0" if before else None, high=before, limit=size + 2, descending=True
        )
        items = [item for item in page.items if item.sk != before]
        found = tuple(msgspec.json.decode(item.body, type=RefusedStart) for item in items[:size])
        return RefusedPage(
            tuple(one for one in found if caller.may_read(one.environment)),
            seal(bound_to, items[size - 1].sk) if len(items) > size else None,
        )


def _clipped(fault: Violation) -> Violation:
    return msgspec.structs.replace(fault, field=clip(fault.field, MAX_TEXT), message=clip(fault.message, MAX_TEXT))
