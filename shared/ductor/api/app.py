"""The API as one callable: API Gateway HTTP API events in, responses out. The Lambda and the local server run this."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ductor.api.deps import ApiDeps
from ductor.api.routes.batches import BatchRoutes
from ductor.api.routes.bridge import BridgeRoutes
from ductor.api.routes.connections import ConnectionRoutes
from ductor.api.routes.console import console_routes
from ductor.api.routes.costs import CostRoutes
from ductor.api.routes.decisions import DecisionRoutes
from ductor.api.routes.definitions import DefinitionRoutes
from ductor.api.routes.environments import EnvironmentRoutes
from ductor.api.routes.events import EventRoutes
from ductor.api.routes.keys import KeyRoutes
from ductor.api.routes.lineage import LineageRoutes
from ductor.api.routes.node_controls import NodeRoutes
from ductor.api.routes.open_pages import open_routes
from ductor.api.routes.resets import ResetRoutes
from ductor.api.routes.run_reads import RunReadRoutes
from ductor.api.routes.runs import RunRoutes
from ductor.api.routes.schedules import ScheduleRoutes
from ductor.api.routes.tenants import TenantRoutes
from ductor.api.routing import Route, Router

Handler = Callable[[dict[str, Any], Any], dict[str, Any]]
"""(event, context) to response, both in payload format 2.0."""


def build_api(deps: ApiDeps) -> Handler:
    """The handler for all routes; safe to call from several threads at once."""
    return Router(api_routes(deps), deps.identity, deps.clock, deps.ids, deps.admin.rates)


def api_routes(deps: ApiDeps) -> tuple[Route, ...]:
    """Every route, those without a key included."""
    routes: tuple[Route, ...] = (
        *open_routes(lambda: routes),
        *console_routes(),
        *DefinitionRoutes(deps.definitions).routes(),
        *RunRoutes(deps.triggers, deps.controls).routes(),
        *DecisionRoutes(deps.decisions, deps.signals).routes(),
        *LineageRoutes(deps.continuations, deps.trees).routes(),
        *NodeRoutes(deps.operations.nodes).routes(),
        *ResetRoutes(deps.operations.resets).routes(),
        *BatchRoutes(deps.operations.batches).routes(),
        *ScheduleRoutes(deps.schedules, deps.clock).routes(),
        *EventRoutes(deps.events).routes(),
        *BridgeRoutes(deps.bridge).routes(),
        *RunReadRoutes(deps.runs, deps.clock).routes(),
        *CostRoutes(deps.costs).routes(),
        *KeyRoutes(deps.keys, deps.admin).routes(),
        *EnvironmentRoutes(deps.admin).routes(),
        *ConnectionRoutes(deps.admin).routes(),
        *TenantRoutes(deps.admin, deps.keys).routes(),
    )
    return routes
