"""Reset: forks a run at a point of its history. The source is read and not changed, but for the request's outcome.

A fork owns copies of all that it keeps. Its header is published last, in one write with the outcome of the request, so
that a crash before leaves nothing to see, and a repeat after finds the fork. Before the first copy a row says that the
fork is being made: what is left of one that is refused, or that nobody finishes, is found by it and removed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import msgspec

from ductor.app.access import Caller, Scope, require
from ductor.app.control import check_texts, look_up, operation_hash
from ductor.app.dispatch import intent_message, send_all
from ductor.app.fork_items import StepInItems, steps_in_items, take_items, within
from ductor.app.fork_values import ForkValues
from ductor.app.headers import HEAD, header_item, is_expiring, is_unborn, read_header, run_pk, tenant_of, unborn_item
from ductor.app.history import read_history
from ductor.app.library import Library
from ductor.app.payloads import PayloadStore
from ductor.app.refusals import invalid, precondition, run_not_found
from ductor.app.requests import outcome_put
from ductor.app.reset_rules import check_items, check_overrides, check_preserved
from ductor.app.trigger import START_WAKE_MS
from ductor.engine import forking
from ductor.engine.context import TickContext
from ductor.engine.forking import ForkPlan, Target
from ductor.engine.graph import Graph, compile_graph
from ductor.engine.slots import slot_asked
from ductor.expressions import ExpressionError
from ductor.model import transition as tr
from ductor.model.intent import Intent, IntentKind
from ductor.model.json import JSON
from ductor.model.lineage import COMPENSATION, WORKFLOW, fork_run_id
from ductor.model.payload import NULL, Payload
from ductor.model.run import MAX_HEADER_BYTES, Origin, RunState
from ductor.model.transition import Kept
from ductor.ports import Check, Clock, Expect, Ids, Item, Put, Queue, Table, UnavailableError, Unit
from ductor.steps.behaviours import BEHAVIOURS

OPERATION: Final = "reset"
DRAWS: Final = 10
"""How often a fork is drawn anew because its source has moved on meanwhile."""

NEVER: Final = 0
"""A version that no row has."""

SOURCE_MOVED: Final = 2
"""The place in the fork's write that checks its source."""

MAX_TARGETS: Final = 2_000
"""Points to fork from that are told; of a longer history the newest."""


class ResetRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Where to fork, what to run with another input, and which later results to take over."""

    request_id: str
    transition_seq: int
    reason: str = ""
    input_overrides: dict[str, JSON] = {}
    preserve_outputs: tuple[str, ...] = ()


class Preview(msgspec.Struct, frozen=True):
    """What a reset would do: results that are kept, results of later steps that are adopted, steps that run again.

    `items` tells of steps inside the scatters that go on with their items.
    """

    kept: tuple[str, ...]
    adopted: tuple[str, ...]
    rerun: tuple[str, ...]
    items: tuple[StepInItems, ...] = ()


class _Drawn(msgspec.Struct, frozen=True):
    """A fork that may be made."""

    state: RunState
    graph: Graph
    plan: ForkPlan


class Resets:
    """Forks runs, says where that is possible, and what it would do. Safe to use from several threads."""

    def __init__(
        self,
        *,
        table: Table,
        payloads: PayloadStore,
        library: Library,
        intents: Queue,
        unit: Unit,
        clock: Clock,
        ids: Ids,
    ) -> None:
        self._table = table
        self._payloads = payloads
        self._library = library
        self._intents = intents
        self._unit = unit
        self._clock = clock
        self._ids = ids

    def targets(self, caller: Caller, run_id: str) -> tuple[Target, ...]:
        """Points of the run's history that a fork may start from, each with the reason to."""
        require(caller, Scope.WORKFLOW_READ)
        state = self._read(caller, run_id)
        found = list(forking.targets(state.origin, self._history(state)))
        return tuple(found[:1] + found[1:][-MAX_TARGETS:])

    def preview(self, caller: Caller, run_id: str, request: ResetRequest) -> Preview:
        """What `reset` would do, with the same refusals, without doing it. `request_id` is not looked at."""
        require(caller, Scope.WORKFLOW_READ)
        drawn = self._draw(self._read(caller, run_id), request)
        kept, adopted = tuple(end.node for end in drawn.plan.kept), tuple(drawn.plan.adopted)
        closed = {node.index for node in drawn.graph.nodes if node.ref in kept}
        rest = [node for node in drawn.graph.nodes if node.ref not in drawn.plan.nodes]
        again = tuple(node.ref for node in rest if not within(drawn.graph, node, closed))
        return Preview(kept, adopted, again, steps_in_items(drawn.graph, drawn.plan))

    def reset(self, caller: Caller, run_id: str, request: ResetRequest) -> str:
        """The id of the fork, which exists when this returns. It derives from run and request: a repeat gives the same.

        Refuses with INVALID_ARGUMENT a point that the history does not have and steps that it does not know, with
        FAILED_PRECONDITION `COMPENSATED` to keep what is being undone, `NOT_COMPLETED`, `STEP_TYPE_WRONG`,
        `NOT_RESETTABLE`, `REQUEST_ID_REUSED`.
        """
        require(caller, Scope.RUN_WRITE)
        check_texts(request.request_id, request.reason)
        same = msgspec.structs.replace(request, reason="", request_id="")
        digest = operation_hash(OPERATION, "", msgspec.to_builtins(same))
        header, answered = look_up(self._table, caller, run_id, request.request_id, digest)
        fork_id = fork_run_id(run_id, request.request_id)
        if answered:
            return fork_id
        for _ in range(DRAWS):
            drawn = self._draw(_readable(header), request)
            begun = self._begin(fork_id, drawn.state.origin)
            state = self._first(caller, fork_id, drawn, request, digest)
            with self._unit.batch():
                if self._publish(caller, state, begun, header, request.request_id, digest):
                    return fork_id
            moved = self._table.get(header.pk, HEAD)
            if moved is None or is_expiring(moved):
                raise run_not_found()
            header = moved
        raise UnavailableError(f"run {run_id} moves on faster than it is read")

    def _begin(self, fork_id: str, source: Origin) -> int:
        """From now on the fork is being made, by whoever asks for it. Which beginning it is."""
        now = self._clock.now_ms()
        unborn = RunState(origin=_origin(source, fork_id, "", now, lambda payload: NULL), updated_at=now)
        there = self._table.write((Put(unborn_item(unborn, now), Expect.ABSENT),))
        if there is None:
            return now
        if there.current is None or not is_expiring(there.current):
            return NEVER  # somebody else has made it
        if not is_unborn(there.current):
            raise UnavailableError(f"what an earlier try has left of the fork {fork_id} is being removed")
        return there.current.version

    def _publish(self, caller: Caller, state: RunState, begun: int, source: Item, request_id: str, digest: str) -> bool:
        """The fork is there. False when it must be made anew: its source has moved on since it was read and may have

        begun to undo a step; or what was stored for this beginning has been removed.
        """
        run_id = source.pk.removeprefix("R#")
        audit = next(one for one in state.last.transitions if isinstance(one, tr.OperatorAudited))
        header = header_item(state)
        if len(header.body) > MAX_HEADER_BYTES:
            raise precondition(
                "STATE_TOO_LARGE", "what the fork keeps does not fit into a run; choose an earlier point"
            )
        outcome = outcome_put(run_id, audit, state.updated_at)
        lost = self._table.write((Put(header, begun), outcome, Check(source.pk, HEAD, source.version)))
        if lost is not None and (lost.index == SOURCE_MOVED or (lost.index == 0 and _removed(lost.current))):
            return False
        if lost is not None:
            # Another request was faster: the same one, or one that is refused here.
            look_up(self._table, caller, run_id, request_id, digest)
            return True
        # Its first tick also arms the wake-up that so far only the header knows.
        start = Intent(f"{state.run_id}:fork", state.run_id, IntentKind.TIMER_FIRED, state.updated_at)
        send_all(self._intents, [intent_message(start, self._ids)])
        return True

    def _first(self, caller: Caller, fork_id: str, drawn: _Drawn, request: ResetRequest, digest: str) -> RunState:
        """The fork's first state. Everything that it refers to is stored before."""
        source, plan = drawn.state, drawn.plan
        values = ForkValues(self._payloads, self._unit, source.run_id, fork_id)
        now = self._clock.now_ms()
        forked = tr.RunForked(
            source=source.run_id,
            seq=request.transition_seq,
            kept=tuple(end.node for end in plan.kept),
            overrides={ref: values.keep(value) for ref, value in request.input_overrides.items()},
            preserved={ref: Kept(values.copy(kept.output), kept.edges) for ref, kept in plan.adopted.items()},
            items=take_items(plan, values),
        )
        audit = tr.OperatorAudited(
            intent_id=f"{fork_id}:fork",
            operation=OPERATION,
            outcome="applied",
            actor=caller.key_id,
            request_id=request.request_id,
            request_hash=digest,
            reason=request.reason,
            target=f"{source.run_id}@{request.transition_seq}",
        )
        origin = _origin(source.origin, fork_id, caller.key_id, now, values.copy)
        values.store()
        slot = self._slot(drawn.graph, origin)
        state = forking.first_state(drawn.graph, origin, plan, forked, audit, START_WAKE_MS, values.copy, slot)
        values.store()
        return state

    def _slot(self, graph: Graph, origin: Origin) -> tr.SlotAsked | None:
        """A fork waits like any other run until its definition's concurrency lets it go on."""
        first = RunState(origin=origin, updated_at=origin.created_at)
        ctx = TickContext(graph, first, origin.created_at, lambda one: self._payloads.load(origin.run_id, one))
        try:
            return slot_asked(ctx)
        except ExpressionError as fault:
            raise invalid("EXPRESSION_ERROR", fault.message, "concurrency.key") from fault

    def _draw(self, state: RunState, request: ResetRequest) -> _Drawn:
        if state.origin.kind != WORKFLOW:
            raise precondition("NOT_RESETTABLE", f"a {state.origin.kind} run is not forked", "run_id")
        if not 0 <= request.transition_seq <= state.seq:
            raise invalid("POINT_UNKNOWN", f"send a transition from 0 to {state.seq}", "transition_seq")
        graph = self._graph(state.origin)
        check_overrides(graph, request.input_overrides)
        check_preserved(graph, state, request.preserve_outputs, request.input_overrides)
        source = forking.read_source(graph, state.origin, self._history(state), request.transition_seq)
        plan = forking.plan_fork(graph, source, request.input_overrides, request.preserve_outputs)
        check_items(graph, source, plan, request.preserve_outputs)
        undone = sorted(self._undone(state) & plan.steps)
        if undone:
            message = f"the effects of {', '.join(undone)} are being undone; choose a point before them"
            raise precondition("COMPENSATED", message, "transition_seq")
        return _Drawn(state, graph, plan)

    def _undone(self, state: RunState) -> set[str]:
        """The steps whose inverses have been planned."""
        linked = state.linked.get(COMPENSATION)
        if linked is None or not linked.undoes:
            return set()
        plan: list[dict[str, Any]] = self._payloads.load(state.run_id, linked.plan)
        inverses = [target for target in plan if target["group"] != "finally"]
        return {target["step"].partition("@")[0] for target in inverses}

    def _history(self, state: RunState) -> Sequence[forking.Told]:
        return [(entry.seq, entry.at, entry.transition) for entry in read_history(self._table, state)]

    def _graph(self, origin: Origin) -> Graph:
        return compile_graph(self._library.load(origin.tenant, origin.definition_id)[1], BEHAVIOURS)

    def _read(self, caller: Caller, run_id: str) -> RunState:
        item = self._table.get(run_pk(run_id), HEAD) if 0 < len(run_id) <= 64 and run_id.isascii() else None
        if item is None or tenant_of(item) != caller.tenant:
            raise run_not_found()
        state = _readable(item)
        if not caller.may_read(state.origin.environment):
            raise run_not_found()
        return state


def _origin(own: Origin, fork_id: str, actor: str, now: int, copy: Callable[[Payload], Payload]) -> Origin:
    """That of a fork: started as its source was, and nobody's child."""
    return msgspec.structs.replace(
        own,
        run_id=fork_id,
        created_at=now,
        source_run_id=own.run_id,
        root_run_id=fork_id,
        parent_run_id="",
        parent_node="",
        parent_attempt=0,
        parent_generation=0,
        detached=False,
        nesting_depth=0,
        created_by=actor,
        input=copy(own.input),
        variables=copy(own.variables),
        seed_context=copy(own.seed_context),
    )


def _removed(header: Item | None) -> bool:
    """Whether the row of a fork was taken for that of a dead one: its values go, so it is begun anew.

    So it is where somebody else has begun anew meanwhile: of what is referred to here, not all may be there again.
    """
    return header is None or is_expiring(header)


def _readable(header: Item) -> RunState:
    try:
        return read_header(header)
    except (msgspec.DecodeError, msgspec.ValidationError) as fault:
        raise precondition("RUN_UNREADABLE", "this release cannot read the run's state", "run_id") from fault
