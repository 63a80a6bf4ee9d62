"""Reading runs: lists, one run, its steps, history, attempts, audit trail and outputs."""

from __future__ import annotations

from typing import Any, Final

from ductor.api.call import Call
from ductor.api.models.common import FlatPage, Wrapped, WrappedPage, flat
from ductor.api.models.runs import (
    PAGE_PARAMETERS,
    Attempt,
    AuditEntry,
    NodeOutputAnswer,
    OutputPlace,
    OutputPlaceAnswer,
    RunDetail,
    RunEvent,
    RunInput,
    RunOutput,
    RunStep,
    RunSummary,
    SnapshotAnswer,
)
from ductor.api.routing import Elsewhere, Route
from ductor.app import handing
from ductor.app.run_filter import read_filter
from ductor.app.runs import Runs
from ductor.ports import Clock

_LIST: Final = "/api/workflows/runs"
_ONE: Final = f"{_LIST}/<run_id>"
_V2: Final = "/api/v2/workflow-runs/<run_id>"
_SCOPE: Final = "workflow:read"
_FILTERS: Final = (
    "workflow_type",
    "status",
    "active_only",
    "started_after",
    "started_before",
    "subject_type",
    "subject_id",
    "root_run_id",
    "parent_run_id",
    "journey_id",
    "schedule",
    "environment",
    "definition_id",
    "q",
    "label.",
    "attr.",
)


class RunReadRoutes:
    """`/api/workflows/runs` and the debug views under `/api/v2/workflow-runs`."""

    def __init__(self, runs: Runs, clock: Clock) -> None:
        self._runs = runs
        self._clock = clock

    def routes(self) -> tuple[Route, ...]:
        return (*self._of_runs(), *self._of_nodes())

    def _of_runs(self) -> tuple[Route, ...]:
        pages = PAGE_PARAMETERS
        return (
            Route(
                "GET", _LIST, "List runs", self._list, WrappedPage[RunSummary], query=(*_FILTERS, *pages), scope=_SCOPE
            ),
            Route("GET", _ONE, "Read a run", self._get, Wrapped[RunDetail], scope=_SCOPE),
            Route("GET", f"{_ONE}/steps", "Steps of a run", self._steps, Wrapped[list[RunStep]], scope=_SCOPE),
            Route(
                "GET",
                f"{_ONE}/events",
                "History of a run",
                self._events,
                WrappedPage[RunEvent],
                query=pages,
                scope=_SCOPE,
            ),
            Route("GET", f"{_ONE}/input", "Input of a run", self._input, Wrapped[RunInput], scope=_SCOPE),
            Route("GET", f"{_ONE}/output", "Output of a run", self._output, Wrapped[RunOutput], scope=_SCOPE),
        )

    def _of_nodes(self) -> tuple[Route, ...]:
        pages = PAGE_PARAMETERS
        return (
            Route(
                "GET",
                f"{_V2}/snapshot",
                "Every node of a run",
                self._snapshot,
                SnapshotAnswer,
                query=("scope", *pages),
                scope=_SCOPE,
            ),
            Route(
                "GET",
                f"{_V2}/attempts",
                "Attempts",
                self._attempts,
                FlatPage[Attempt],
                query=("node", *pages),
                scope=_SCOPE,
            ),
            Route("GET", f"{_V2}/audit", "Audit trail", self._audit, FlatPage[AuditEntry], query=pages, scope=_SCOPE),
            Route(
                "GET",
                f"{_V2}/nodes/<node>/output",
                "Output of a node",
                self._node_output,
                NodeOutputAnswer,
                scope=_SCOPE,
            ),
        )

    def _list(self, call: Call) -> WrappedPage[RunSummary]:
        query = call.query(*_FILTERS, *PAGE_PARAMETERS)
        wanted = read_filter(query.pairs(), self._clock.now_ms())
        page = self._runs.list_runs(call.caller, wanted, query.integer("limit"), query.text("cursor"))
        shown = [RunSummary.model_validate(item) for item in page.items]
        return WrappedPage(data=shown, next_cursor=page.next_cursor, metadata=call.metadata())

    def _get(self, call: Call) -> Wrapped[RunDetail]:
        summary = self._runs.summary(call.caller, call.ids["run_id"])
        return Wrapped(data=RunDetail(summary=RunSummary.model_validate(summary)), metadata=call.metadata())

    def _steps(self, call: Call) -> Wrapped[list[RunStep]]:
        nodes = self._runs.steps(call.caller, call.ids["run_id"])
        return Wrapped(data=[RunStep.model_validate(node) for node in nodes], metadata=call.metadata())

    def _events(self, call: Call) -> WrappedPage[RunEvent]:
        query = call.query(*PAGE_PARAMETERS)
        page = self._runs.events(call.caller, call.ids["run_id"], query.integer("limit"), query.text("cursor"))
        shown = [RunEvent.model_validate(item) for item in page.items]
        return WrappedPage(data=shown, next_cursor=page.next_cursor, metadata=call.metadata())

    def _input(self, call: Call) -> Wrapped[RunInput]:
        run_id = call.ids["run_id"]
        shown = RunInput(run_id=run_id, input=self._runs.input(call.caller, run_id))
        return Wrapped(data=shown, metadata=call.metadata())

    def _output(self, call: Call) -> Wrapped[RunOutput] | Elsewhere:
        run_id = call.ids["run_id"]
        output = self._runs.output(call.caller, run_id)
        if isinstance(output, handing.Elsewhere):
            place = OutputPlace.model_validate(self._place(run_id, output))
            return Elsewhere(output.url, Wrapped(data=place, metadata=call.metadata()))
        return Wrapped(data=RunOutput(run_id=run_id, output=output), metadata=call.metadata())

    def _snapshot(self, call: Call) -> SnapshotAnswer:
        query = call.query("scope", *PAGE_PARAMETERS)
        scope, run_id = query.text("scope"), call.ids["run_id"]
        if not scope:
            return flat(SnapshotAnswer, self._runs.snapshot(call.caller, run_id), call.metadata())
        page = self._runs.items(call.caller, run_id, scope, query.integer("limit"), query.text("cursor"))
        return flat(SnapshotAnswer, page, call.metadata())

    def _attempts(self, call: Call) -> FlatPage[Attempt]:
        query = call.query("node", *PAGE_PARAMETERS)
        limit, cursor, node = query.integer("limit"), query.text("cursor"), query.text("node") or ""
        page = self._runs.attempts(call.caller, call.ids["run_id"], limit, cursor, node)
        shown = [Attempt.model_validate(item) for item in page.items]
        return FlatPage(items=shown, next_cursor=page.next_cursor, metadata=call.metadata())

    def _audit(self, call: Call) -> FlatPage[AuditEntry]:
        query = call.query(*PAGE_PARAMETERS)
        page = self._runs.audit(call.caller, call.ids["run_id"], query.integer("limit"), query.text("cursor"))
        shown = [AuditEntry.model_validate(item) for item in page.items]
        return FlatPage(items=shown, next_cursor=page.next_cursor, metadata=call.metadata())

    def _node_output(self, call: Call) -> NodeOutputAnswer | Elsewhere:
        run_id, node = call.ids["run_id"], call.ids["node"]
        output = self._runs.node_output(call.caller, run_id, node)
        if isinstance(output, handing.Elsewhere):
            fields = {**self._place(run_id, output), "node": node, "metadata": call.metadata()}
            return Elsewhere(output.url, OutputPlaceAnswer.model_validate(fields))
        return NodeOutputAnswer(run_id=run_id, node=node, output=output, metadata=call.metadata())

    def _place(self, run_id: str, output: handing.Elsewhere) -> dict[str, Any]:
        expires_at = self._clock.now_ms() + handing.LINK_SECONDS * 1000
        return {"run_id": run_id, "output_url": output.url, "output_bytes": output.bytes, "expires_at": expires_at}
