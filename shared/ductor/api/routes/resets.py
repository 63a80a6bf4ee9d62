"""Forking runs at a point of their history."""

from __future__ import annotations

from typing import Final

import msgspec

from ductor.api.call import Call
from ductor.api.models.resets import (
    PointBody,
    PreviewAnswer,
    ResetAnswer,
    ResetBody,
    ResetTarget,
    StepInItemsModel,
    TargetsAnswer,
)
from ductor.api.routing import Route
from ductor.app.access import Scope
from ductor.app.reset import ResetRequest, Resets

_RUN: Final = "/api/v2/workflow-runs/<run_id>"


class ResetRoutes:
    """`/api/v2/workflow-runs/{run}:reset`, `:previewReset`, `/reset-targets`."""

    def __init__(self, resets: Resets) -> None:
        self._resets = resets

    def routes(self) -> tuple[Route, ...]:
        read, write = Scope.WORKFLOW_READ.value, Scope.RUN_WRITE.value
        return (
            Route("POST", f"{_RUN}:reset", "Fork a run", self._reset, ResetAnswer, ResetBody, scope=write, status=202),
            Route(
                "POST",
                f"{_RUN}:previewReset",
                "What a reset would do",
                self._preview,
                PreviewAnswer,
                PointBody,
                scope=read,
            ),
            Route("GET", f"{_RUN}/reset-targets", "Points to fork from", self._targets, TargetsAnswer, scope=read),
        )

    def _reset(self, call: Call) -> ResetAnswer:
        body = call.body(ResetBody)
        request = _request(body, body.request_id, body.reason)
        fork_id = self._resets.reset(call.caller, call.ids["run_id"], request)
        return ResetAnswer(run_id=call.ids["run_id"], new_run_id=fork_id, metadata=call.metadata())

    def _preview(self, call: Call) -> PreviewAnswer:
        preview = self._resets.preview(call.caller, call.ids["run_id"], _request(call.body(PointBody)))
        return PreviewAnswer(
            run_id=call.ids["run_id"],
            kept=list(preview.kept),
            adopted=list(preview.adopted),
            rerun=list(preview.rerun),
            items=[StepInItemsModel(**msgspec.structs.asdict(one)) for one in preview.items],
            metadata=call.metadata(),
        )

    def _targets(self, call: Call) -> TargetsAnswer:
        found = self._resets.targets(call.caller, call.ids["run_id"])
        targets = [
            ResetTarget(transition_seq=point.seq, at=point.at, node=point.node or None, reason=point.reason)
            for point in found
        ]
        return TargetsAnswer(run_id=call.ids["run_id"], targets=targets, metadata=call.metadata())


def _request(body: PointBody, request_id: str = "", reason: str = "") -> ResetRequest:
    return ResetRequest(
        request_id=request_id,
        transition_seq=body.transition_seq,
        reason=reason,
        input_overrides=body.input_overrides,
        preserve_outputs=tuple(dict.fromkeys(body.preserve_outputs)),
    )
