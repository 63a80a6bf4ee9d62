"""What the validator may know of this server: its actions, and the caller's environments and published families."""

from __future__ import annotations

from ductor.app.access import Caller
from ductor.app.library import Library
from ductor.app.tenants import Tenants
from ductor.steps.spec import Catalog
from ductor.validation.context import Context, Standing


def validation_context(catalog: Catalog, tenants: Tenants, library: Library, caller: Caller, now: int) -> Context:
    """The context for one caller. Everything is decided here: nothing stays `unresolved` on a server."""

    def environment(key: str) -> Standing:
        found = tenants.environment(caller.tenant, key)
        if found is None or not found.active:
            return Standing.UNKNOWN
        return Standing.KNOWN if found.open_to_changes and caller.may_write(key) else Standing.NOT_WRITABLE

    def family(slug: str) -> Standing:
        return Standing.KNOWN if library.family(caller.tenant, slug)[0].max_version else Standing.UNKNOWN

    return Context(catalog=catalog, now=now, environment=environment, connection=_no_connections, family=family)


def _no_connections(mode: str, ref: str) -> Standing:
    """This release stores no connections, so none can be named."""
    del mode, ref
    return Standing.UNKNOWN
