"""Tenants: making one, its redaction key, its environments, and what the very first start of a server sets up."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Final

import msgspec

from ductor.app.access import NON_ADMIN_SCOPES, Caller
from ductor.app.headers import sort_time
from ductor.app.keys import IssuedKey, KeyGrant, Keys
from ductor.app.refusals import invalid, not_found
from ductor.model.errors import ErrorCode, refuse
from ductor.model.json import JSON
from ductor.ports import Clock, Expect, Ids, Index, Item, Op, Put, Table

TENANT: Final = "TENANT"
DEFAULT_ENVIRONMENT: Final = "default"
_FIRST: Final = ("N#FIRST", "FIRST")


class Tenant(msgspec.Struct, frozen=True, kw_only=True):
    """The row `N#<tenant>`/`TENANT`. `redaction_key` keys the hashes that show instead of this tenant's values."""

    id: str
    name: str
    created_at: int
    redaction_key: str


class Environment(msgspec.Struct, frozen=True, kw_only=True):
    """The row `N#<tenant>`/`ENV#<key>`: where definitions live and runs execute.

    `variables` are what its runs read over the definitions' defaults. `connections` maps names to ids or slugs.
    With `require_release` only callers that name `live_deployment` start runs.
    """

    key: str
    title: str = ""
    description: str = ""
    active: bool = True
    mutable: bool = True
    direct_mutation: bool = True
    requires_promotion: bool = False
    variables: dict[str, JSON] = {}
    connections: dict[str, str] = {}
    require_release: bool = False
    live_deployment: str = ""
    created_at: int = 0
    updated_at: int = 0

    @property
    def open_to_changes(self) -> bool:
        """Whether definitions may be put into it directly."""
        return self.active and self.mutable and self.direct_mutation and not self.requires_promotion

    @property
    def open_to_promotion(self) -> bool:
        """Whether published versions may be promoted into it."""
        return self.active and self.mutable


def environment_sk(key: str) -> str:
    """Sort key of an environment's row."""
    return f"ENV#{key}"


def environment_item(tenant: str, environment: Environment, version: int) -> Item:
    """The row of an environment; `version` counts its writes."""
    body = msgspec.json.encode(environment)
    return Item(pk=f"N#{tenant}", sk=environment_sk(environment.key), version=version, body=body)


class FirstStart(msgspec.Struct, frozen=True):
    """The first tenant and, when they were made just now, its two keys."""

    tenant: str
    key: IssuedKey | None
    admin_key: IssuedKey | None


class _FirstRow(msgspec.Struct, frozen=True):
    tenant: str


class Tenants:
    """All tenants. Their rows never change after they are made."""

    def __init__(self, table: Table, clock: Clock, ids: Ids) -> None:
        self._table = table
        self._clock = clock
        self._ids = ids
        self._redaction_keys: dict[str, bytes] = {}

    def create(self, name: str) -> Tenant:
        """Make a tenant with an active, mutable environment `default`."""
        if not 1 <= len(name) <= 200:
            raise invalid("FIELD_INVALID", "name the tenant with 1 to 200 characters", "name")
        tenant, ops = self._prepare(name)
        self._table.write(ops)
        return tenant

    def create_with_key(self, name: str, keys: Keys) -> tuple[Tenant, IssuedKey]:
        """A tenant and its first administrator's key, both or neither."""
        if not 1 <= len(name) <= 200:
            raise invalid("FIELD_INVALID", "name the tenant with 1 to 200 characters", "name")
        tenant, ops = self._prepare(name)
        issued, put = keys.prepare(tenant.id, KeyGrant(name="first admin key", roles=frozenset({"admin"})))
        self._table.write([*ops, put])
        return tenant, issued

    def is_operator(self, tenant: str) -> bool:
        """Whether this is the tenant of the first start, whose administrators look after the installation itself."""
        stored = self._table.get(*_FIRST)
        return stored is not None and msgspec.json.decode(stored.body, type=_FirstRow).tenant == tenant

    def exists(self, tenant: str) -> bool:
        """Whether there is such a tenant; any text may be asked for."""
        usable = 0 < len(tenant) <= 64 and tenant.isascii() and tenant.isprintable()
        return usable and self._table.get(f"N#{tenant}", TENANT) is not None

    def get(self, tenant: str) -> Tenant:
        """Raises NOT_FOUND `TENANT_NOT_FOUND`."""
        item = self._table.get(f"N#{tenant}", TENANT) if 0 < len(tenant) <= 64 and tenant.isascii() else None
        if item is None:
            raise not_found("TENANT_NOT_FOUND", "there is no such tenant")
        return msgspec.json.decode(item.body, type=Tenant)

    def list(self) -> tuple[Tenant, ...]:
        """All tenants in the order they were made."""
        found: list[Tenant] = []
        cursor: str | None = None
        while True:
            page = self._table.query("TENANTS", index=Index.I1, cursor=cursor)
            rows = self._table.batch_get([(item.pk, item.sk) for item in page.items])
            found += [msgspec.json.decode(row.body, type=Tenant) for row in rows.values()]
            cursor = page.cursor
            if cursor is None:
                return tuple(sorted(found, key=lambda tenant: (tenant.created_at, tenant.id)))

    def redaction_key(self, tenant: str) -> bytes:
        """32 bytes, the same for ever. Read once per process and tenant."""
        known = self._redaction_keys.get(tenant)
        if known is None:
            known = hashlib.sha256(self.get(tenant).redaction_key.encode()).digest()
            self._redaction_keys[tenant] = known
        return known

    def environment(self, tenant: str, key: str) -> Environment | None:
        """The environment of that key, None when the tenant has none."""
        if not key or len(key) > 200:
            return None
        item = self._table.get(f"N#{tenant}", environment_sk(key))
        return msgspec.json.decode(item.body, type=Environment) if item else None

    def require_writable(self, caller: Caller, key: str) -> Environment:
        """The environment, if `caller` may put definitions into it directly.

        Refuses with `ENVIRONMENT_UNKNOWN` (400) or `ENVIRONMENT_NOT_WRITABLE` (403 when the key lacks authority, 400
        when the environment itself refuses direct changes).
        """
        environment = self.environment(caller.tenant, key)
        if environment is None:
            raise invalid("ENVIRONMENT_UNKNOWN", f"there is no environment {key!r}; name one by its key", "environment")
        if not caller.may_write(key):
            message = f"this API key may not write to the environment {key!r}"
            raise refuse(ErrorCode.PERMISSION_DENIED, "ENVIRONMENT_NOT_WRITABLE", message, "environment")
        if not environment.open_to_changes:
            message = f"the environment {key!r} takes no direct changes; promote the definition into it instead"
            raise invalid("ENVIRONMENT_NOT_WRITABLE", message, "environment")
        return environment

    def first_start(self, keys: Keys, *, reissue: bool = False) -> FirstStart:
        """Make the first tenant with a working key and an admin key, once.

        Called again it makes nothing and has no keys to show, unless `reissue` asks for two new ones: for a server
        that stopped after storing the tenant and before writing down its keys.
        """
        stored = self._table.get(*_FIRST)
        if stored is None:
            tenant, ops = self._prepare("default")
            key, admin_key, puts = _first_keys(keys, tenant.id)
            marker = Item(pk=_FIRST[0], sk=_FIRST[1], body=msgspec.json.encode(_FirstRow(tenant.id)))
            if self._table.write([Put(marker, Expect.ABSENT), *ops, *puts]) is None:
                return FirstStart(tenant.id, key, admin_key)
            stored = self._table.get(*_FIRST)
        if stored is None:
            raise RuntimeError("the marker of the first start was there and is gone")
        tenant_id = msgspec.json.decode(stored.body, type=_FirstRow).tenant
        if not reissue:
            return FirstStart(tenant_id, None, None)
        key, admin_key, puts = _first_keys(keys, tenant_id)
        self._table.write(puts)
        return FirstStart(tenant_id, key, admin_key)

    def _prepare(self, name: str) -> tuple[Tenant, Sequence[Op]]:
        now = self._clock.now_ms()
        tenant = Tenant(id=self._ids.uuid(), name=name, created_at=now, redaction_key=self._ids.token(32))
        environment = Environment(key=DEFAULT_ENVIRONMENT, created_at=now)
        pk = f"N#{tenant.id}"
        row = Item(pk=pk, sk=TENANT, body=msgspec.json.encode(tenant), i1=("TENANTS", f"{sort_time(now)}#{tenant.id}"))
        ops: list[Op] = [
            Put(row, Expect.ABSENT),
            Put(environment_item(tenant.id, environment, 1), Expect.ABSENT),
        ]
        return tenant, ops


def _first_keys(keys: Keys, tenant: str) -> tuple[IssuedKey, IssuedKey, list[Put]]:
    key, put = keys.prepare(
        tenant,
        KeyGrant(name="first key", scopes=frozenset(NON_ADMIN_SCOPES), roles=frozenset({"operator"})),
    )
    admin_key, admin_put = keys.prepare(tenant, KeyGrant(name="first admin key", roles=frozenset({"admin"})))
    return key, admin_key, [put, admin_put]
