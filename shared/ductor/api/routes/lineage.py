"""Runs that belong together: continuing as new, and the tree of runs."""

from __future__ import annotations

from ductor.api.call import Call
from ductor.api.models.common import Wrapped
from ductor.api.models.lineage import ContinueAnswer, ContinueBody, RunTree
from ductor.api.routing import Route
from ductor.app.access import Scope
from ductor.app.successors import Continuations
from ductor.app.tree import RunTrees


class LineageRoutes:
    """`/api/v2/workflow-runs/{run}:continueAsNew` and `/api/workflows/runs/{run}/tree`."""

    def __init__(self, continuations: Continuations, trees: RunTrees) -> None:
        self._continuations = continuations
        self._trees = trees

    def routes(self) -> tuple[Route, ...]:
        return (
            Route(
                "POST",
                "/api/v2/workflow-runs/<run_id>:continueAsNew",
                "End a run and go on with a new one",
                self._continue,
                ContinueAnswer,
                ContinueBody,
                scope=Scope.RUN_WRITE.value,
                status=202,
            ),
            Route(
                "GET",
                "/api/workflows/runs/<run_id>/tree",
                "The tree of a run",
                self._tree,
                Wrapped[RunTree],
                scope=Scope.WORKFLOW_READ.value,
            ),
        )

    def _continue(self, call: Call) -> ContinueAnswer:
        body = call.body(ContinueBody)
        done = self._continuations.send(
            call.caller,
            call.ids["run_id"],
            body.request_id,
            body.reason,
            body.seed_run_context,
            discard_pending=body.discard_pending,
        )
        return ContinueAnswer(run_id=done.run_id, new_run_id=done.new_run_id, metadata=call.metadata())

    def _tree(self, call: Call) -> Wrapped[RunTree]:
        tree = self._trees.read(call.caller, call.ids["run_id"])
        return Wrapped(data=RunTree.model_validate(tree), metadata=call.metadata())
