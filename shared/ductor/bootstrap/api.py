"""What stands behind the HTTP API, for every backend."""

from __future__ import annotations

from typing import Protocol

from ductor.actions.connectors.catalog import Connectors
from ductor.api.auth import Identity
from ductor.api.deps import ApiDeps
from ductor.app.administration import Administration
from ductor.app.bridge import Bridge
from ductor.app.definitions import Definitions
from ductor.app.prices import Prices
from ductor.app.run_cost import RunCosts
from ductor.app.runs import Runs
from ductor.app.scheduling import Scheduling
from ductor.app.tree import RunTrees
from ductor.bootstrap.use_cases import UseCases
from ductor.ports import Links, Secrets
from ductor.steps.spec import Catalog


class InstalledCatalog(Catalog, Protocol):
    """The actions of an installation, with the connectors that some of them come from."""

    connectors: Connectors


def api_deps(
    use: UseCases,
    *,
    identity: Identity,
    registry: InstalledCatalog,
    secrets: Secrets,
    prices: Prices,
    bridge: Bridge,
    scheduling: Scheduling,
    links: Links | None = None,
) -> ApiDeps:
    """All of it, made now. `links` lead to large outputs, where there are such."""
    doors = use.doors
    definitions = Definitions(doors.table, doors.clock, doors.ids, registry, use.tenants, scheduling.outside)
    return ApiDeps(
        identity=identity,
        keys=use.keys,
        definitions=definitions,
        triggers=use.triggers,
        controls=use.controls,
        decisions=use.decisions,
        events=use.events,
        bridge=bridge,
        signals=use.signals,
        runs=Runs(table=doors.table, payloads=doors.payloads, library=doors.library, tenants=use.tenants, links=links),
        schedules=scheduling.schedules,
        operations=use.operations,
        continuations=use.continuations,
        trees=RunTrees(doors.table),
        costs=RunCosts(doors.table, prices, doors.library),
        admin=_administration(use, registry, secrets, definitions),
        clock=doors.clock,
        ids=doors.ids,
    )


def _administration(
    use: UseCases, registry: InstalledCatalog, secrets: Secrets, definitions: Definitions
) -> Administration:
    return Administration(
        table=use.doors.table,
        secrets=secrets,
        clock=use.doors.clock,
        ids=use.doors.ids,
        connectors=registry.connectors,
        definitions=definitions,
        tenants=use.tenants,
    )
