"""What a run costs."""

from __future__ import annotations

from ductor.api.call import Call
from ductor.api.models.common import Wrapped
from ductor.api.models.costs import RunCost
from ductor.api.routing import Route
from ductor.app.access import Scope
from ductor.app.run_cost import RunCosts


class CostRoutes:
    """`/api/workflows/runs/{run}/cost`."""

    def __init__(self, costs: RunCosts) -> None:
        self._costs = costs

    def routes(self) -> tuple[Route, ...]:
        return (
            Route(
                "GET",
                "/api/workflows/runs/<run_id>/cost",
                "What a run costs on AWS",
                self._read,
                Wrapped[RunCost],
                scope=Scope.WORKFLOW_READ.value,
            ),
        )

    def _read(self, call: Call) -> Wrapped[RunCost]:
        cost = self._costs.read(call.caller, call.ids["run_id"])
        return Wrapped(data=RunCost.model_validate(cost), metadata=call.metadata())
