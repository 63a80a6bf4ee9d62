"""Stored definitions: rows, families, and the cache of what runs execute. Imports no validation, so it loads fast."""

from __future__ import annotations

import zlib
from typing import Final, TypeVar

import msgspec

from ductor.app.headers import sort_time
from ductor.app.refusals import definition_not_found
from ductor.app.shared_cache import SharedCache
from ductor.model.definition import Definition, DefinitionRow
from ductor.model.enums import DefinitionStatus
from ductor.ports import Item, Table

DEF: Final = "DEF"
PLAN: Final = "PLAN"
FAM: Final = "FAM"
_MAX_CACHED: Final = 256
_PLAIN_BYTES: Final = 1_024
_MAX_ID_LENGTH: Final = 64

T = TypeVar("T")


class Family(msgspec.Struct, frozen=True, omit_defaults=True):
    """The row `F#<tenant>#<slug>`/`FAM`. Its version condition puts concurrent publications in one line.

    `newest_id` is the newest version of all; `newest_in` has the newest version per environment key.
    """

    slug: str
    draft_id: str = ""
    newest_id: str = ""
    max_version: int = 0
    newest_in: dict[str, str] = {}


class Standing(msgspec.Struct, frozen=True):
    """What a trigger must know of the row as it is now; the rest of the row is not even decoded."""

    id: str
    tenant: str
    family_slug: str
    status: DefinitionStatus
    version: int


class Card(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a list shows of a definition: the row `DL#<tenant>`/`<created_at>#<id>`. Times: epoch ms, 0 = never."""

    id: str
    family_slug: str
    status: DefinitionStatus
    version: int
    draft_revision: int = 0
    environment: str = ""
    title: str = ""
    description: str = ""
    tags: tuple[str, ...] = ()
    created_at: int = 0
    updated_at: int = 0
    published_at: int = 0


def pack(value: object) -> bytes:
    """JSON, deflated above 1 KB: DynamoDB bills by size, and 5,000 edges must fit into one row."""
    data = msgspec.json.encode(value)
    return data if len(data) <= _PLAIN_BYTES else zlib.compress(data, 6)


def unpack(data: bytes, kind: type[T]) -> T:
    """The value that `pack` stored. JSON never starts like a zlib stream (0x78, an `x`)."""
    return msgspec.json.decode(zlib.decompress(data) if data[:1] == b"\x78" else data, type=kind)


def definition_pk(tenant: str, definition_id: str) -> str:
    return f"D#{tenant}#{definition_id}"


def row_item(row: DefinitionRow, version: int) -> Item:
    """The row `D#<tenant>#<id>`/`DEF`; `version` counts its writes."""
    return Item(pk=definition_pk(row.tenant, row.id), sk=DEF, version=version, body=pack(row))


def plan_item(tenant: str, definition_id: str, definition: Definition) -> Item:
    """The row beside a published version that runs execute, in the engine's own form."""
    return Item(pk=definition_pk(tenant, definition_id), sk=PLAN, body=pack(definition))


def family_pk(tenant: str, slug: str) -> str:
    return f"F#{tenant}#{slug}"


def family_item(tenant: str, family: Family, version: int) -> Item:
    return Item(pk=family_pk(tenant, family.slug), sk=FAM, version=version, body=pack(family))


def version_sk(number: int) -> str:
    """Sort key, beside the family's row, of the id of one of its versions."""
    return f"V#{number:09d}"


def version_item(tenant: str, row: DefinitionRow) -> Item:
    return Item(pk=family_pk(tenant, row.family_slug), sk=version_sk(row.version), body=pack(row.id))


def card_key(row: DefinitionRow) -> tuple[str, str]:
    """Key of the list entry. It holds nothing that ever changes, so that pages stay stable under writes."""
    return f"DL#{row.tenant}", f"{sort_time(row.created_at)}#{row.id}"


def card_item(row: DefinitionRow) -> Item:
    pk, sk = card_key(row)
    return Item(pk=pk, sk=sk, body=pack(_card(row)))


def _card(row: DefinitionRow) -> Card:
    document = row.document
    return Card(
        id=row.id,
        family_slug=row.family_slug,
        status=row.status,
        version=row.version,
        draft_revision=row.draft_revision,
        environment=_text(document.get("environment")),
        title=_text(document.get("title")),
        description=_text(document.get("description")),
        tags=tuple(tag for tag in document.get("tags") or () if isinstance(tag, str)),
        created_at=row.created_at,
        updated_at=row.updated_at,
        published_at=row.published_at,
    )


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


class Library:
    """Reads of definitions. Published versions never change, so those are kept in memory (the last 256 used)."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._loaded: SharedCache[tuple[str, str], tuple[DefinitionRow, Definition]] = SharedCache(_MAX_CACHED)

    def row(self, tenant: str, definition_id: str) -> tuple[DefinitionRow, int]:
        """The row as stored now, and its version. NOT_FOUND for an unknown id and for another tenant's alike."""
        item = self._item(tenant, definition_id)
        return unpack(item.body, DefinitionRow), item.version

    def standing(self, tenant: str, definition_id: str) -> Standing:
        """The present state of a definition. NOT_FOUND for an unknown id and for another tenant's alike."""
        return unpack(self._item(tenant, definition_id).body, Standing)

    def load(self, tenant: str, definition_id: str) -> tuple[DefinitionRow, Definition]:
        """A published version and what its runs execute.

        Of the row everything but `status` is final; the cached `status` may be out of date. NOT_FOUND for unknown
        ids and for drafts.
        """
        return self._loaded.get((tenant, definition_id), lambda: self._load(tenant, definition_id))

    def _load(self, tenant: str, definition_id: str) -> tuple[DefinitionRow, Definition]:
        pk = definition_pk(tenant, definition_id)
        items = self._table.batch_get([(pk, DEF), (pk, PLAN)]) if _plausible(definition_id) else {}
        if (pk, DEF) not in items or (pk, PLAN) not in items:
            raise definition_not_found()
        return unpack(items[pk, DEF].body, DefinitionRow), unpack(items[pk, PLAN].body, Definition)

    def _item(self, tenant: str, definition_id: str) -> Item:
        item = self._table.get(definition_pk(tenant, definition_id), DEF) if _plausible(definition_id) else None
        if item is None:
            raise definition_not_found()
        return item

    def family(self, tenant: str, slug: str) -> tuple[Family, int]:
        """The family and its row's version; an empty one with version 0 when there is none yet."""
        item = self._table.get(family_pk(tenant, slug), FAM)
        return (unpack(item.body, Family), item.version) if item else (Family(slug), 0)

    def version_id(self, tenant: str, slug: str, number: int) -> str:
        """The definition id of a version of a family; empty when there is none."""
        item = self._table.get(family_pk(tenant, slug), version_sk(number))
        return unpack(item.body, str) if item is not None else ""

    def pinned_id(self, tenant: str, slug: str, number: int | None, environment: str) -> str:
        """What a subworkflow step means now: that version, else the family's newest, first of the same environment."""
        if number is not None:
            return self.version_id(tenant, slug, number)
        family, _ = self.family(tenant, slug)
        return family.newest_in.get(environment) or family.newest_id

    def families(self, tenant: str, slugs: set[str]) -> dict[str, Family]:
        """The families that exist, by slug."""
        rows = self._table.batch_get([(family_pk(tenant, slug), FAM) for slug in sorted(slugs)])
        found = [unpack(item.body, Family) for item in rows.values()]
        return {family.slug: family for family in found}


def _plausible(definition_id: str) -> bool:
    """Whether the text can be an id at all; odd ones must not reach a table key."""
    return 0 < len(definition_id) <= _MAX_ID_LENGTH and definition_id.isascii() and definition_id.isprintable()
