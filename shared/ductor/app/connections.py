"""Connections: how a tenant's runs reach other systems. Secrets go in and never come out, except to the action itself.

The table holds settings and the names of the secrets; the secrets themselves are in the port `Secrets`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from ductor.actions.connection import MIN_SECRET
from ductor.actions.connectors.catalog import CUSTOM, Connectors
from ductor.actions.connectors.spec import Connector
from ductor.app.access import ANY_ENVIRONMENT, Caller, Scope, require
from ductor.app.connection_rows import ConnectionRow, connections_pk, id_sk, read_row, row_item, slug_sk
from ductor.app.connection_settings import check_settings
from ductor.app.entitlements import EntitlementStore, require_room
from ductor.app.refusals import aborted, invalid, not_found, precondition
from ductor.model.errors import ErrorCode, refuse
from ductor.model.json import JSON
from ductor.ports import Clock, Delete, Expect, Ids, Item, Op, Put, SecretLostError, Secrets, Table

MAX_CONNECTIONS: Final = 500
MAX_ENVIRONMENTS: Final = 100
MAX_SECRET: Final = 4_000
"""Longest secret in bytes; AWS keeps 4 KB in a free parameter."""
_ROUTE: Final = "types"
"""Where the API lists the types of connections; a connection of this name could not be read there."""
_SLUG: Final = re.compile(r"[a-z][a-z0-9_-]{0,62}", re.ASCII)
_UUID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_SECRET_NAME: Final = re.compile(r"[a-z][a-z0-9_]{0,62}", re.ASCII)
_MAX_RACES: Final = 20


class ConnectionChanges(msgspec.Struct, frozen=True, kw_only=True):
    """What to set; None leaves a field as it is. In `settings` and `secrets` only the named ones change, None removes.

    `environments` are the keys of those whose runs may use it; `*` stands for all.
    """

    title: str | None = None
    settings: Mapping[str, JSON] | None = None
    secrets: Mapping[str, str | None] | None = None
    environments: tuple[str, ...] | None = None
    active: bool | None = None


class Connections:
    """The connections of all tenants, for their administrators."""

    def __init__(
        self,
        *,
        table: Table,
        secrets: Secrets,
        clock: Clock,
        ids: Ids,
        connectors: Connectors,
        entitlements: EntitlementStore,
    ) -> None:
        self._table = table
        self._secrets = secrets
        self._clock = clock
        self._ids = ids
        self._connectors = connectors
        self._entitlements = entitlements

    def create(self, caller: Caller, slug: str, kind: str, changes: ConnectionChanges) -> ConnectionRow:
        """Store a new connection of the connector `kind`.

        ALREADY_EXISTS `CONNECTION_EXISTS` for a slug that is taken, INVALID_ARGUMENT for settings or secrets that do
        not fit the type, `ENTITLEMENT_REQUIRED` when the plan has no room. Secrets are stored before what names them.
        """
        require(caller, Scope.ADMIN)
        if not _SLUG.fullmatch(slug) or _UUID.fullmatch(slug) or slug == _ROUTE:
            message = "a slug starts with a to z, then at most 62 of a to z, 0 to 9, _ and -; no UUID, and not `types`"
            raise invalid("FIELD_INVALID", message, "slug")
        connector = self._connectors.get(kind)
        if connector is None:
            raise invalid("FIELD_INVALID", f"a type is one of {', '.join(self._connectors.names())}", "type")
        have = len(self.list(caller))
        if have >= MAX_CONNECTIONS:
            raise invalid("FIELD_INVALID", f"a tenant has at most {MAX_CONNECTIONS} connections", "slug")
        require_room(self._entitlements.get(caller.tenant).max_connections, have, "connections")
        now = self._clock.now_ms()
        blank = ConnectionRow(
            id=self._ids.uuid(), tenant=caller.tenant, slug=slug, type=kind, created_at=now, created_by=caller.key_id
        )
        row = self._changed(caller, connector, blank, changes)
        pk = connections_pk(caller.tenant)
        by_id = Item(pk=pk, sk=id_sk(row.id), body=msgspec.json.encode(slug))
        if self._table.write([Put(row_item(row, 1), Expect.ABSENT), Put(by_id, Expect.ABSENT)]) is None:
            return row
        self._discard(row.secrets.values())
        message = f"there is a connection {slug!r} already; change it or choose another slug"
        raise refuse(ErrorCode.ALREADY_EXISTS, "CONNECTION_EXISTS", message, "slug")

    def list(self, caller: Caller) -> tuple[ConnectionRow, ...]:
        """All of them, by slug."""
        require(caller, Scope.ADMIN)
        found: list[ConnectionRow] = []
        cursor: str | None = None
        while True:
            page = self._table.query(connections_pk(caller.tenant), prefix=slug_sk(""), cursor=cursor)
            found += [msgspec.json.decode(item.body, type=ConnectionRow) for item in page.items]
            cursor = page.cursor
            if cursor is None:
                return tuple(found)

    def get(self, caller: Caller, ref: str) -> ConnectionRow:
        """By id or slug. Raises NOT_FOUND `CONNECTION_UNKNOWN`."""
        require(caller, Scope.ADMIN)
        return self._read(caller, ref)[0]

    def update(self, caller: Caller, ref: str, changes: ConnectionChanges) -> ConnectionRow:
        """Change settings, secrets, environments. Attempts that begin afterwards see it.

        Pointing a connection at another `base_url` takes all of its secrets anew: whoever may change where they are
        sent must not thereby learn them.
        """
        require(caller, Scope.ADMIN)
        for _ in range(_MAX_RACES):
            before, version = self._read(caller, ref)
            connector = self._connector_of(before)
            after = self._changed(caller, connector, before, changes)
            if self._table.write([Put(row_item(after, version + 1), version)]) is None:
                self._discard(set(before.secrets.values()) - set(after.secrets.values()))
                return after
            self._discard(set(after.secrets.values()) - set(before.secrets.values()))
        raise aborted("CONNECTION_BUSY", "too many others are changing this connection at this moment; try again")

    def delete(self, caller: Caller, ref: str) -> ConnectionRow:
        """Remove it and its secrets. Steps that name it fail from then on with `CONNECTION_UNKNOWN`."""
        require(caller, Scope.ADMIN)
        for _ in range(_MAX_RACES):
            row, version = self._read(caller, ref)
            pk = connections_pk(caller.tenant)
            ops: list[Op] = [Delete(pk, slug_sk(row.slug), version), Delete(pk, id_sk(row.id))]
            if self._table.write(ops) is None:
                self._discard(row.secrets.values())
                return row
        raise aborted("CONNECTION_BUSY", "too many others are changing this connection at this moment; try again")

    def _read(self, caller: Caller, ref: str) -> tuple[ConnectionRow, int]:
        found = read_row(self._table, caller.tenant, ref)
        if found is None:
            raise not_found("CONNECTION_UNKNOWN", "this tenant has no such connection", "connection")
        return found

    def _connector_of(self, row: ConnectionRow) -> Connector:
        connector = self._connectors.get(row.type)
        if connector is None:
            raise invalid("FIELD_INVALID", f"this installation has no connector {row.type!r} any more", "type")
        return connector

    def _changed(
        self, caller: Caller, connector: Connector, before: ConnectionRow, changes: ConnectionChanges
    ) -> ConnectionRow:
        """The row with the changes; new secrets are stored under names of their own, old ones stay where they are."""
        if changes.title is not None and len(changes.title) > 200:
            raise invalid("FIELD_INVALID", "at most 200 characters", "title")
        settings, environments = _merged(before.settings, changes.settings), _environments(before, changes)
        check_settings(self._connectors, connector, settings)
        given = changes.secrets or {}
        kept = {name: stored for name, stored in before.secrets.items() if given.get(name, stored) is not None}
        _check_secrets(connector, given, set(kept))
        if settings.get("base_url") != before.settings.get("base_url") and before.secrets.keys() - given.keys():
            message = "a new base_url takes every secret anew, so that nobody can have them sent elsewhere"
            raise invalid("FIELD_REQUIRED", message, f"secrets.{min(before.secrets.keys() - given.keys())}")
        return msgspec.structs.replace(
            before,
            title=before.title if changes.title is None else changes.title,
            settings=settings,
            secrets={**kept, **self._stored(before, given)},
            environments=environments,
            active=before.active if changes.active is None else changes.active,
            updated_at=self._clock.now_ms(),
            updated_by=caller.key_id,
        )

    def _stored(self, row: ConnectionRow, given: Mapping[str, str | None]) -> dict[str, str]:
        made: dict[str, str] = {}
        for name, text in given.items():
            if text is not None:
                made[name] = f"{row.tenant}/{row.id}/{name}/{self._ids.token(9)}"
                self._put(made[name], text)
        return made

    def _put(self, name: str, text: str) -> None:
        try:
            self._secrets.put(name, text)
        except SecretLostError as fault:
            raise precondition("SECRETS_LOCKED", str(fault), "secrets") from None

    def _discard(self, names: Iterable[str]) -> None:
        """Remove what no row names any more. A crash before leaves it behind, sealed and found by nobody."""
        for name in tuple(names):
            self._secrets.delete(name)


def _merged(before: Mapping[str, JSON], changes: Mapping[str, JSON] | None) -> dict[str, JSON]:
    merged = {**before, **(changes or {})}
    return {name: value for name, value in merged.items() if value is not None}


def _environments(before: ConnectionRow, changes: ConnectionChanges) -> tuple[str, ...]:
    if changes.environments is None:
        return before.environments
    if len(changes.environments) > MAX_ENVIRONMENTS:
        raise invalid("FIELD_INVALID", f"at most {MAX_ENVIRONMENTS} environments, or {ANY_ENVIRONMENT}", "environments")
    if not changes.environments or any(not 1 <= len(key) <= 63 for key in changes.environments):
        raise invalid("FIELD_INVALID", f"name keys of environments, or {ANY_ENVIRONMENT} for all", "environments")
    return tuple(dict.fromkeys(changes.environments))


def _check_secrets(connector: Connector, given: Mapping[str, str | None], kept: set[str]) -> None:
    """No message repeats a secret, not even a part of one."""
    for name, text in given.items():
        field = f"secrets.{name[:63]}"
        known = name in connector.secrets or (connector is CUSTOM and _SECRET_NAME.fullmatch(name))
        if not known:
            names = ", ".join(sorted(connector.secrets))
            raise invalid("FIELD_UNKNOWN", f"this type has the secrets {names or 'none'}", field)
        if text is not None and not (len(text) >= MIN_SECRET and _bytes(text) <= MAX_SECRET):
            message = f"a secret has at least {MIN_SECRET} characters and at most {MAX_SECRET} bytes"
            raise invalid("FIELD_INVALID", message, field)
    for name, declared in connector.secrets.items():
        if declared.required and given.get(name) is None and (name not in kept):
            what = f": {declared.description}" if declared.description else ""
            raise invalid("FIELD_REQUIRED", f"this type needs it{what}", f"secrets.{name}")


def _bytes(text: str) -> int:
    return len(text.encode("utf-8", "replace"))
