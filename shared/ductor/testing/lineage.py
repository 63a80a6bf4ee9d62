"""What must hold between the runs of a world: nobody is left alone, untold, undone twice or not undone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ductor.app.run_output import run_output
from ductor.engine.closing import places_of
from ductor.engine.evolve import ABANDON
from ductor.model.definition import Compensation
from ductor.model.enums import NodeStatus, RunStatus, StepType
from ductor.model.json import JSON
from ductor.model.lineage import COMPENSATION, WORKFLOW, child_run_id, step_of
from ductor.model.payload import NULL
from ductor.model.run import NodeState, RunState
from ductor.testing.world import World

_UNDO: Final = {
    RunStatus.FAILED: "on_failure",
    RunStatus.TIMED_OUT: "on_failure",
    RunStatus.CANCELLED: "on_cancel",
}


def unrelated(world: World, *, final: bool) -> Iterator[str]:
    """Every broken promise between runs, once all is at rest."""
    states = {run_id: world.state(run_id) for run_id in world.run_ids()}
    for run_id, state in states.items():
        if world.stalled(run_id) or not state.status.terminal:
            continue
        for fault in (*_owing(state, final), *_undone(world, state, states), *_answered(world, state, states)):
            yield f"run {run_id}: {fault}"


def _owing(state: RunState, final: bool) -> Iterator[str]:
    if not final:
        return
    if state.duties:
        yield f"has ended and still owes {state.duties}"
    open_ones = [key for key, policy in state.children.items() if policy != ABANDON]
    if open_ones:
        yield f"has ended and does not know how {open_ones} did"


def _undone(world: World, state: RunState, states: dict[str, RunState]) -> Iterator[str]:
    """One compensation run with exactly the inverses of what took effect, the last effect first."""
    runs = [
        other for other in states.values() if other.origin.parent_run_id == state.run_id and _kind(other, COMPENSATION)
    ]
    undoing = [[name for name in world.graph(other.run_id).by_ref if name.startswith("undo-")] for other in runs]
    undone = sorted(_plain(name) for names in undoing for name in names)
    expected = _inverses(world, state) if _kind(state, WORKFLOW) else []
    if undone != sorted(expected):
        yield f"is undone by {undone}, not by {sorted(expected)}"
    longest = [_plain(name) for name in max(undoing, key=len, default=[])]
    in_order = [name for name in expected if name in longest]
    if not state.late and longest != in_order:
        yield f"is undone by {longest}, in another order than {in_order}"
    for row in world.attempts(state.run_id):
        step = world.graph(state.run_id).by_ref[step_of(row.task.node)].step
        if row.late_output is not None and step.compensation and not _known(world, state, row.task.node):
            yield f"attempt {row.task.attempt} of {row.task.node} succeeded late and nobody knows"


def _known(world: World, state: RunState, node: str) -> bool:
    graph = world.graph(state.run_id)
    place = next((one for one in places_of(graph, state, graph.by_ref[step_of(node)]) if one.id == node), None)
    took = place is not None and place.entry is not None and _took_effect(place.entry, place.node.step.type)
    return node in state.late or took


def _kind(state: RunState, kind: str) -> bool:
    return state.origin.kind == kind


def _plain(name: str) -> str:
    return name.partition(".")[0]


def _inverses(world: World, state: RunState) -> list[str]:
    field = _UNDO.get(state.status)
    if field is None:
        return []
    graph = world.graph(state.run_id)
    ended: list[tuple[int, str, Compensation]] = []
    own = [node for node in graph.nodes if state.fork is None or not state.fork.foreign(node.ref)]
    for node in own:
        for place in places_of(graph, state, node):
            entry = place.entry
            took = entry is not None and (place.id in state.late or _took_effect(entry, node.step.type))
            took = took and entry is not None and not entry.foreign
            if node.step.compensation and entry and took:
                ended.append((entry.ended_seq, place.id.replace("@", "-").replace(".", "-"), node.step.compensation))
    ordered = sorted(ended, key=lambda one: one[0], reverse=True)
    return [f"undo-{name}" for _, name, own in ordered for _ in getattr(own, field)]


def _output(world: World, child: RunState) -> JSON:
    definition = world.graph(child.run_id).definition
    return run_output(definition, child, lambda payload: world.value(child.run_id, payload))


def _took_effect(entry: NodeState, kind: StepType) -> bool:
    if entry.status is NodeStatus.COMPLETED:
        return entry.error is None
    failed = entry.status in (NodeStatus.FAILED, NodeStatus.TIMED_OUT)
    return failed and entry.output != NULL and kind is not StepType.APPROVAL


def _answered(world: World, state: RunState, states: dict[str, RunState]) -> Iterator[str]:
    """A subworkflow step that completed has a child that did, with this output."""
    graph = world.graph(state.run_id)
    for place in (place for node in graph.nodes for place in places_of(graph, state, node)):
        node, entry = place.node, place.entry
        completed = entry is not None and entry.status is NodeStatus.COMPLETED and entry.error is None
        if node.step.type is not StepType.SUBWORKFLOW or entry is None or not completed:
            continue
        if entry.foreign or (state.fork is not None and state.fork.foreign(place.id)):
            continue  # the child was the source's
        child = states.get(child_run_id(state.run_id, place.id, entry.attempt, entry.generation))
        if child is None:
            yield f"{place.id} completed without a child"
            continue
        while child.successor is not None and child.successor.run_id in states:
            child = states[child.successor.run_id]
        if not node.step.args.get("wait", True):
            continue
        shown, told = world.value(state.run_id, entry.output), _output(world, child)
        if child.status not in (RunStatus.COMPLETED, RunStatus.MERGED) or shown != told:
            yield f"{place.id} shows {shown}, its child {child.run_id} is {child.status.value} with {told}"
