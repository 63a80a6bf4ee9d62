"""What must hold of pauses whatever happened: one decision per gate, one event per pause, nothing from nowhere."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ductor.model import transition as tr
from ductor.model.enums import StepType
from ductor.model.json import JSON
from ductor.model.run import HistoryRow
from ductor.model.transition import Transition
from ductor.testing.world import World


def pause_faults(world: World, run_id: str, rows: Sequence[HistoryRow]) -> Iterator[str]:
    """Every broken promise of one run's gates and waits, in the order of its history."""
    seen = _Seen(world, run_id)
    for row in rows:
        for transition in row.transitions:
            yield from seen.follow(transition)


class _Seen:
    """What the run has decided and consumed so far."""

    def __init__(self, world: World, run_id: str) -> None:
        self._world = world
        self._run_id = run_id
        self._decisions: dict[str, list[tr.OperatorAudited]] = {}
        self._consumed: set[tuple[tuple[str, str, str], str]] = set()
        self._before: dict[str, set[tuple[str, str, str]]] = {}
        self._generation: dict[str, int] = {}
        self._foreign: set[str] = set()

    def follow(self, transition: Transition) -> Iterator[str]:
        match transition:
            case tr.NodeParked(node, generation) if self._generation.get(node) != generation:
                self._generation[node] = generation
                self._decisions[node] = []
                # Items of a scatter wait independently: what one consumed another may still consume, once.
                path = f"{node.partition('@')[2]}."
                self._before[node] = {key for key, other in self._consumed if path.startswith(other)}
            case tr.OperatorAudited(operation="approve" | "reject", outcome="applied", target=node):
                self._decisions.setdefault(node, []).append(transition)
                if len(self._decisions[node]) > 1:
                    yield f"{node} was decided {len(self._decisions[node])} times"
            case tr.RunForked():
                self._foreign = {*transition.kept, *transition.preserved}
            case tr.NodeAdopted(node):
                self._foreign.add(node)
            case tr.NodeCompleted(node) if node in self._foreign:
                pass  # decided, or ended by its event, in the source
            case tr.NodeCompleted(node, output):
                kind = self._world.graph(self._run_id).by_ref[node.partition("@")[0]].step.type
                value = self._world.value(self._run_id, output)
                if kind is StepType.APPROVAL and isinstance(value, dict):
                    yield from self._decided(node, value)
                elif kind in (StepType.WAIT_EVENT, StepType.EVENT_SET) and isinstance(value, dict):
                    yield from self._ended_by(node, value)

    def _decided(self, node: str, output: dict[str, Any]) -> Iterator[str]:
        told = self._decisions.get(node, [])
        if output["decided_by"] == "timeout":
            if told:
                yield f"the deadline of {node} undid a decision"
            return
        if not told:
            yield f"{node} was decided by nobody"
            return
        by = {"approve": "approved", "reject": "rejected"}[told[0].operation]
        payload = output["payload"]
        other = isinstance(payload, dict) and payload.get("by") not in (None, told[0].request_id)
        if output["decision"] != by or other:
            yield f"{node} shows another decision than {told[0].request_id}, which was applied"

    def _ended_by(self, node: str, output: dict[str, Any]) -> Iterator[str]:
        if "event_id" in output:
            yield from self._event(node, output)
        sets = output.get("events")
        for name, events in sets.items() if isinstance(sets, dict) else ():
            if len({event["event_id"] for event in events}) < len(events):
                yield f"{node} counts an event twice for {name}"
            for event in events:
                yield from self._event(node, event)

    def _event(self, node: str, event: JSON) -> Iterator[str]:
        key = (event["event_name"], event["correlation_key"], event["event_id"])
        if event["event_id"].startswith("op:"):
            return
        if key in self._before.get(node, ()):
            yield f"{node} was ended by {key}, which had ended an earlier step of this run"
        path = node.partition("@")[2]
        self._consumed.add((key, f"{path}." if path else ""))
        sent = [
            known
            for known, _ in self._world.published
            if (known.event_name, known.correlation_key, known.event_id) == key and known.payload == event["payload"]
        ]
        if self._world.published and not sent:
            yield f"{node} was ended by {key}, which nobody published"


def promised(world: World) -> Iterator[str]:
    """An event that was answered `matched` has reached so many pauses, but for those that were cancelled meanwhile."""
    for event, answers in world.published:
        matched = sum(answers)
        if matched and not _reached(world, event.event_id):
            yield f"{event.event_id} was answered {matched} and is nowhere"


def _reached(world: World, event_id: str) -> bool:
    """Whether some pause shows the event, or some pause ended in another way and may have held it."""
    for run_id in world.run_ids():
        for transition in world.history(run_id):
            if isinstance(transition, tr.NodeCancelled | tr.RunEnding | tr.RunEnded | tr.PageClosed):
                return True
            if isinstance(transition, tr.NodeCompleted) and event_id in str(world.value(run_id, transition.output)):
                return True
            if isinstance(transition, tr.NodeParked) and event_id in str(world.value(run_id, transition.input)):
                return True
    return False
