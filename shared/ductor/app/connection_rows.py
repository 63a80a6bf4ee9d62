"""The rows of connections: `C#<tenant>` under the slug, and from the id to the slug. Holds no secret."""

from __future__ import annotations

from typing import Final

import msgspec

from ductor.app.access import ANY_ENVIRONMENT
from ductor.model.json import JSON
from ductor.ports import Item, Table

_MAX_REF: Final = 200


class ConnectionRow(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One connection. `secrets` maps the names of its secrets to where the port keeps them. Times: epoch ms."""

    id: str
    tenant: str
    slug: str
    type: str
    title: str = ""
    settings: dict[str, JSON] = {}
    secrets: dict[str, str] = {}
    environments: tuple[str, ...] = (ANY_ENVIRONMENT,)
    active: bool = True
    created_at: int = 0
    updated_at: int = 0
    created_by: str = ""
    updated_by: str = ""

    def serves(self, environment: str) -> bool:
        """Whether runs of `environment` may use it."""
        return self.active and (ANY_ENVIRONMENT in self.environments or environment in self.environments)


def connections_pk(tenant: str) -> str:
    return f"C#{tenant}"


def slug_sk(slug: str) -> str:
    return f"S#{slug}"


def id_sk(connection_id: str) -> str:
    return f"I#{connection_id}"


def row_item(row: ConnectionRow, version: int) -> Item:
    """`version` counts the row's writes."""
    return Item(pk=connections_pk(row.tenant), sk=slug_sk(row.slug), version=version, body=msgspec.json.encode(row))


def read_row(table: Table, tenant: str, ref: str) -> tuple[ConnectionRow, int] | None:
    """The connection with this slug or id as it is now, and its row's version; None when there is none."""
    if not 0 < len(ref) <= _MAX_REF or not ref.isascii() or not ref.isprintable():
        return None
    pk = connections_pk(tenant)
    found = table.batch_get([(pk, slug_sk(ref)), (pk, id_sk(ref))])
    item = found.get((pk, slug_sk(ref)))
    if item is None and (pk, id_sk(ref)) in found:
        item = table.get(pk, slug_sk(msgspec.json.decode(found[pk, id_sk(ref)].body, type=str)))
    return None if item is None else (msgspec.json.decode(item.body, type=ConnectionRow), item.version)
