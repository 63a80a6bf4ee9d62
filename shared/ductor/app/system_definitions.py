"""Global system definitions: versions that the operator keeps in files. No tenant and no API route sees them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from ductor.app.library import Card, Library, card_item, family_item, plan_item, row_item, unpack
from ductor.model.definition import DefinitionRow
from ductor.model.enums import DefinitionStatus
from ductor.model.errors import Severity, Violation
from ductor.model.json import JSON
from ductor.ports import Clock, Expect, Ids, Put, Table
from ductor.steps.spec import Catalog
from ductor.validation.context import Context
from ductor.validation.document import canonical, to_definition
from ductor.validation.validator import validate

SYSTEM: Final = "_system"
"""Where they are kept: no tenant has this id, because those are UUIDs."""

_MAX_RACES: Final = 20


class SystemDefinitions:
    """The system definitions of one installation."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._library = Library(table)

    def load(self, document: Mapping[str, JSON], catalog: Catalog, clock: Clock, ids: Ids) -> tuple[Violation, ...]:
        """Make a document its family's newest version; nothing is written when it is that already.

        The violations that refuse it, empty when it is in place. What only a tenant's server knows is not asked.
        """
        found = validate(dict(document), Context(catalog=catalog, now=clock.now_ms()))
        errors = tuple(violation for violation in found if violation.severity is Severity.ERROR)
        if errors:
            return errors
        body = canonical(dict(document))
        for _ in range(_MAX_RACES):
            if self._written(body, clock.now_ms(), ids.uuid()):
                return ()
        return (Violation("", "DEFINITION_BUSY", "others write this definition at this moment; start again"),)

    def newest(self) -> list[DefinitionRow]:
        """The newest version of every family, by slug."""
        cards: dict[str, Card] = {}
        cursor: str | None = None
        while True:
            page = self._table.query(f"DL#{SYSTEM}", cursor=cursor)
            for item in page.items:
                card = unpack(item.body, Card)
                if card.family_slug not in cards or cards[card.family_slug].version < card.version:
                    cards[card.family_slug] = card
            cursor = page.cursor
            if cursor is None:
                break
        return [self._library.row(SYSTEM, cards[slug].id)[0] for slug in sorted(cards)]

    def _written(self, body: dict[str, JSON], now: int, new_id: str) -> bool:
        slug = str(body["family_slug"])
        family, stored = self._library.family(SYSTEM, slug)
        if family.newest_id and self._library.row(SYSTEM, family.newest_id)[0].document == body:
            return True
        row = DefinitionRow(
            id=new_id,
            tenant=SYSTEM,
            family_slug=slug,
            status=DefinitionStatus.PUBLISHED,
            version=family.max_version + 1,
            document=body,
            created_at=now,
            updated_at=now,
            published_at=now,
        )
        newest = msgspec.structs.replace(family, newest_id=row.id, max_version=row.version)
        ops = (
            Put(row_item(row, 1), Expect.ABSENT),
            Put(plan_item(SYSTEM, row.id, to_definition(body)), Expect.ABSENT),
            Put(card_item(row)),
            Put(family_item(SYSTEM, newest, stored + 1), stored or Expect.ABSENT),
        )
        return self._table.write(ops) is None
