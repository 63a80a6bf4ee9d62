"""What administrators of a tenant work with, put together once: environments, connections, variables, plan."""

from __future__ import annotations

from ductor.actions.connectors.catalog import Connectors
from ductor.app.connecting import Connecting
from ductor.app.connections import Connections
from ductor.app.definitions import Definitions
from ductor.app.entitlements import EntitlementStore
from ductor.app.environments import Environments
from ductor.app.promotion import Promotions
from ductor.app.rate_limit import RateLimit
from ductor.app.tenants import Tenants
from ductor.app.variables import Variables
from ductor.ports import Clock, Ids, Secrets, Table


class Administration:
    """The use cases around definitions, on one table and one store of secrets."""

    def __init__(
        self,
        *,
        table: Table,
        secrets: Secrets,
        clock: Clock,
        ids: Ids,
        connectors: Connectors,
        definitions: Definitions,
        tenants: Tenants,
    ) -> None:
        self.tenants = tenants
        self.connectors = connectors
        self.entitlements = EntitlementStore(table)
        self.rates = RateLimit(table, clock)
        self.environments = Environments(table, clock, self.entitlements)
        self.variables = Variables(self.environments, clock)
        self.connections = Connections(
            table=table,
            secrets=secrets,
            clock=clock,
            ids=ids,
            connectors=connectors,
            entitlements=self.entitlements,
        )
        self.connecting = Connecting(table=table, secrets=secrets, clock=clock, connectors=connectors)
        self.promotions = Promotions(table, definitions, tenants)
