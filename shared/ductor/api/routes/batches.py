"""One control over many runs."""

from __future__ import annotations

from ductor.api.call import Call
from ductor.api.models.batches import BatchAnswer, BatchBody, BatchRefusal
from ductor.api.routing import Route
from ductor.app.access import Scope
from ductor.app.batches import Batch, Batches, BatchRequest


class BatchRoutes:
    """`/api/v2/workflow-runs:batch` and `/api/v2/workflow-runs/batches/{id}`."""

    def __init__(self, batches: Batches) -> None:
        self._batches = batches

    def routes(self) -> tuple[Route, ...]:
        begin, path, scope = "/api/v2/workflow-runs:batch", "/api/v2/workflow-runs/batches/<batch_id>", Scope.RUN_WRITE
        return (
            Route("POST", begin, "Control many runs", self._begin, BatchAnswer, BatchBody, scope=scope, status=202),
            Route("GET", path, "Read a batch", self._get, BatchAnswer, scope=scope),
        )

    def _begin(self, call: Call) -> BatchAnswer:
        body = call.body(BatchBody)
        request = BatchRequest(
            request_id=body.request_id, operation=body.operation, filter=body.wanted(), reason=body.reason
        )
        return _shown(call, self._batches.begin(call.caller, request))

    def _get(self, call: Call) -> BatchAnswer:
        return _shown(call, self._batches.get(call.caller, call.ids["batch_id"]))


def _shown(call: Call, batch: Batch) -> BatchAnswer:
    return BatchAnswer(
        batch_id=batch.batch_id,
        status=batch.status.value,
        operation=batch.operation,
        accepted=batch.accepted,
        refused=batch.refused,
        refusals=[BatchRefusal(run_id=one.run_id, code=one.code) for one in batch.refusals],
        created_at=batch.created_at,
        finished_at=batch.finished_at or None,
        metadata=call.metadata(),
    )
