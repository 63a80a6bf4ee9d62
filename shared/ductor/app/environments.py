"""Environments of a tenant: who may change what in them, what their runs read, and which release may start runs."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from ductor.app.access import Caller, Scope, require, require_authority
from ductor.app.entitlements import EntitlementStore, require_room
from ductor.app.refusals import aborted, invalid, not_found
from ductor.app.tenants import DEFAULT_ENVIRONMENT, Environment, environment_item, environment_sk
from ductor.model.errors import ErrorCode, refuse
from ductor.ports import Clock, Expect, Put, Table

MAX_ENVIRONMENTS: Final = 100
MAX_RELEASE: Final = 256
MAX_CONNECTIONS: Final = 200
_KEY: Final = re.compile(r"[a-z][a-z0-9_-]{0,62}", re.ASCII)
_MAX_RACES: Final = 50


class EnvironmentChanges(msgspec.Struct, frozen=True, kw_only=True):
    """What to change; None leaves a field as it is.

    `connections` maps names that steps use (connection_ref_mode: environment) to ids or slugs; only the named ones
    change, and None removes one.
    `live_deployment` is the caller release that may start runs where `require_release` holds.
    """

    title: str | None = None
    description: str | None = None
    active: bool | None = None
    mutable: bool | None = None
    direct_mutation: bool | None = None
    requires_promotion: bool | None = None
    connections: Mapping[str, str | None] | None = None
    require_release: bool | None = None
    live_deployment: str | None = None


class Environments:
    """The environments of all tenants. Administrators change them; an environment is switched off, never deleted."""

    def __init__(self, table: Table, clock: Clock, entitlements: EntitlementStore) -> None:
        self._table = table
        self._clock = clock
        self._entitlements = entitlements

    def list(self, caller: Caller) -> tuple[Environment, ...]:
        """All of them, by key."""
        require(caller, Scope.ADMIN)
        found: list[Environment] = []
        cursor: str | None = None
        while True:
            page = self._table.query(f"N#{caller.tenant}", prefix=environment_sk(""), cursor=cursor)
            found += [msgspec.json.decode(item.body, type=Environment) for item in page.items]
            cursor = page.cursor
            if cursor is None:
                return tuple(found)

    def get(self, caller: Caller, key: str) -> Environment:
        """Raises NOT_FOUND `ENVIRONMENT_UNKNOWN`."""
        require(caller, Scope.ADMIN)
        return self._read(caller.tenant, key)[0]

    def create(self, caller: Caller, key: str, changes: EnvironmentChanges) -> Environment:
        """A new environment, active and open to changes unless `changes` say otherwise.

        ALREADY_EXISTS `ENVIRONMENT_EXISTS` for a key that is taken; `ENTITLEMENT_REQUIRED` when the plan has no room.
        """
        require(caller, Scope.ADMIN)
        require_authority(caller, key)
        if not _KEY.fullmatch(key):
            message = "a key starts with a to z, followed by at most 62 of a to z, 0 to 9, _ and -"
            raise invalid("FIELD_INVALID", message, "key")
        have = len(self.list(caller))
        if have >= MAX_ENVIRONMENTS:
            raise invalid("FIELD_INVALID", f"a tenant has at most {MAX_ENVIRONMENTS} environments", "key")
        require_room(self._entitlements.get(caller.tenant).max_environments, have, "environments")
        now = self._clock.now_ms()
        made = _changed(Environment(key=key, created_at=now), changes, now)
        if self._table.write([Put(environment_item(caller.tenant, made, 1), Expect.ABSENT)]) is not None:
            message = f"there is an environment {key!r} already; change it or choose another key"
            raise refuse(ErrorCode.ALREADY_EXISTS, "ENVIRONMENT_EXISTS", message, "key")
        return made

    def update(self, caller: Caller, key: str, changes: EnvironmentChanges) -> Environment:
        """Change the given fields. Needs write authority over the environment. Concurrent changes of others stay."""
        require(caller, Scope.ADMIN)
        require_authority(caller, key)
        if key == DEFAULT_ENVIRONMENT and changes.active is False:
            raise invalid("FIELD_INVALID", "the default environment cannot be switched off", "active")
        now = self._clock.now_ms()
        return self.rewrite(caller.tenant, key, lambda before: _changed(before, changes, now))

    def rewrite(self, tenant: str, key: str, change: Callable[[Environment], Environment]) -> Environment:
        """Store what `change` makes of the row as it is now; it is called again when somebody else was faster."""
        for _ in range(_MAX_RACES):
            before, version = self._read(tenant, key)
            after = change(before)
            if self._table.write([Put(environment_item(tenant, after, version + 1), version)]) is None:
                return after
        raise aborted("ENVIRONMENT_BUSY", "too many others are changing this environment at this moment; try again")

    def _read(self, tenant: str, key: str) -> tuple[Environment, int]:
        item = self._table.get(f"N#{tenant}", environment_sk(key)) if _KEY.fullmatch(key) else None
        if item is None:
            raise not_found("ENVIRONMENT_UNKNOWN", "this tenant has no such environment", "key")
        return msgspec.json.decode(item.body, type=Environment), item.version


_WIRE: Final = {"live_deployment": "release.external_deployment_id"}


def _changed(before: Environment, changes: EnvironmentChanges, now: int) -> Environment:
    given = {name: value for name in changes.__struct_fields__ if (value := getattr(changes, name)) is not None}
    mapped = {**before.connections, **(changes.connections or {})}
    given["connections"] = {name: ref for name, ref in mapped.items() if ref is not None}
    after = msgspec.structs.replace(before, **given, updated_at=now)
    for name, limit in (("title", 200), ("description", 4_000), ("live_deployment", MAX_RELEASE)):
        if len(getattr(after, name)) > limit:
            raise invalid("FIELD_INVALID", f"at most {limit} characters", _WIRE.get(name, name))
    if after.require_release and not after.live_deployment:
        message = "name the live release, or nobody could start a run"
        raise invalid("FIELD_REQUIRED", message, _WIRE["live_deployment"])
    if len(after.connections) > MAX_CONNECTIONS:
        raise invalid("FIELD_INVALID", f"at most {MAX_CONNECTIONS} names", "connections")
    for name, ref in after.connections.items():
        if not 1 <= len(name) <= 200 or not 1 <= len(ref) <= 200:
            raise invalid("FIELD_INVALID", "names and references have 1 to 200 characters", "connections")
    return after
