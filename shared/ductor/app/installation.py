"""What the validator may know of this server: its actions, and the caller's environments, connections and families."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

import msgspec

from ductor.app.access import Caller
from ductor.app.connecting import ENVIRONMENT_MODE
from ductor.app.connection_rows import ConnectionRow, read_row
from ductor.app.entitlements import EntitlementStore
from ductor.app.library import Library
from ductor.app.tenants import Environment, Tenants
from ductor.model.json import JSON
from ductor.ports import Table
from ductor.steps.spec import Catalog
from ductor.validation.context import Context, Standing


class Known(msgspec.Struct, frozen=True):
    """Where the validator's questions are answered from. `promoted`: the definition comes into its environment by

    promotion, so that environments which take no direct changes are no fault.
    """

    catalog: Catalog
    table: Table
    tenants: Tenants
    library: Library
    caller: Caller
    promoted: bool = False


def validation_context(known: Known, document: Mapping[str, JSON], now: int) -> Context:
    """The context for one document. Everything is decided here: nothing stays `unresolved` on a server."""
    caller, tenant = known.caller, known.caller.tenant
    allowed = EntitlementStore(known.table).get(tenant)
    own = document.get("environment")
    home = known.tenants.environment(tenant, own) if isinstance(own, str) else None

    def environment(key: str) -> Standing:
        found = home if home is not None and home.key == key else known.tenants.environment(tenant, key)
        if found is None or not found.active:
            return Standing.UNKNOWN
        open_now = found.open_to_promotion if known.promoted else found.open_to_changes
        return Standing.KNOWN if open_now and caller.may_write(key) else Standing.NOT_WRITABLE

    @cache
    def connection(mode: str, ref: str) -> ConnectionRow | None:
        return _connection(known.table, tenant, home, mode, ref)

    def version(slug: str, number: int) -> Standing:
        return Standing.KNOWN if known.library.version_id(tenant, slug, number) else Standing.UNKNOWN

    def family(slug: str) -> Standing:
        return Standing.KNOWN if known.library.family(tenant, slug)[0].max_version else Standing.UNKNOWN

    return Context(
        catalog=known.catalog,
        now=now,
        environment=environment,
        connection=lambda mode, ref: Standing.KNOWN if connection(mode, ref) else Standing.UNKNOWN,
        connection_type=lambda mode, ref: found.type if (found := connection(mode, ref)) else "",
        family=family,
        version=version,
        step_types=allowed.step_types,
        max_steps=allowed.max_steps,
    )


def _connection(table: Table, tenant: str, home: Environment | None, mode: str, ref: str) -> ConnectionRow | None:
    """As `Connecting.find` does it, with the environment that was read already."""
    if mode == ENVIRONMENT_MODE:
        ref = home.connections.get(ref, "") if home else ""
    found = read_row(table, tenant, ref)
    return found[0] if found is not None and home is not None and found[0].serves(home.key) else None
