"""The outside of a simulated world: people who decide, producers who publish, and the steps that wait for them."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any, Final

import msgspec

from ductor.app.decisions import Resolve, Verdict
from ductor.app.signals import SignalRequest
from ductor.model.definition import Step
from ductor.model.enums import EdgeType, NodeStatus, StepType
from ductor.model.json import JSON
from ductor.model.run import NodeState, RunState
from ductor.model.waiting import Event, EventWait
from ductor.testing.world import World

NAMES: Final = ("ev.a", "ev.b")
PAUSES: Final = (StepType.APPROVAL, StepType.WAIT_EVENT, StepType.EVENT_SET)
EDGES: Final = {
    StepType.APPROVAL: (EdgeType.APPROVED, EdgeType.APPROVED, EdgeType.REJECTED, EdgeType.DONE),
    StepType.WAIT_EVENT: (EdgeType.SUCCESS, EdgeType.SUCCESS, EdgeType.TIMEOUT, EdgeType.ERROR, EdgeType.DONE),
    StepType.EVENT_SET: (EdgeType.SUCCESS, EdgeType.SUCCESS, EdgeType.TIMEOUT, EdgeType.ERROR, EdgeType.DONE),
}
_KEYS: Final = ("k0", "k1", "k${{ TRIGGER.payload.n }}", "k${{ TRIGGER.payload.n }}", "${{ TRIGGER.payload.nope }}")
_CONDITIONS: Final = ("", "", "", "EVENT.payload.v > 0", "EVENT.payload.v > TRIGGER.payload.n", "EVENT.payload.nope")


def pause_step(rng: random.Random, kind: StepType, common: dict[str, Any]) -> Step:
    """A step that waits for the outside. `common` are the fields that all steps have."""
    if kind is StepType.APPROVAL:
        return Step(action="approval", args=_timed(rng, {"audience": {"roles": ["operator"]}}, "approve"), **common)
    args: dict[str, Any] = {"correlation_key": rng.choices(_KEYS, weights=(4, 4, 4, 4, 1))[0]}
    args["lookback_ms"] = rng.choice((0, 0, 5_000, 100_000))
    if kind is StepType.WAIT_EVENT:
        args |= {"event_name": rng.choice(NAMES), "condition": rng.choice(_CONDITIONS)}
    else:
        args["requirements"] = [
            {
                "name": f"r{number}",
                "event_name": rng.choice(NAMES),
                "condition": rng.choice(_CONDITIONS),
                "count": rng.choice((1, 1, 1, 2)),
            }
            for number in range(rng.choice((1, 2)))
        ]
    return Step(args=_timed(rng, args, "fail"), **common)


def _timed(rng: random.Random, args: dict[str, Any], other: str) -> dict[str, Any]:
    timeout = rng.choice((0, 0, 3_000, 20_000))
    if timeout:
        args |= {"timeout_ms": timeout, "on_timeout": rng.choice(("fail", "skip", other))}
    return args


def waiting(world: World, run_id: str) -> Iterator[tuple[str, StepType, NodeState]]:
    """The steps of a run that wait for the outside, in items too: id, type and state. None in a run that is ending."""
    state, graph = world.state(run_id), world.graph(run_id)
    if state.ending is not None:
        return
    for node_id, entry in _entries(state):
        kind = graph.by_ref[node_id.partition("@")[0]].step.type
        if entry.status is NodeStatus.WAITING and kind in PAUSES:
            yield node_id, kind, entry


def _entries(state: RunState) -> Iterator[tuple[str, NodeState]]:
    yield from state.root.nodes.items()
    for page in state.loaded.values():
        _, _, path = page.scatter.partition("@")
        for offset, item in enumerate(page.items):
            at = f"{path}.{page.first + offset}" if path else str(page.first + offset)
            yield from ((f"{ref}@{at}", entry) for ref, entry in item.nodes.items())


class Outside:
    """People and producers. Every method may die or be refused like any other actor."""

    def __init__(self, world: World) -> None:
        self.world = world
        self._rng = world.rng
        self._count = 0
        self._decisions: list[Callable[[], object]] = []

    def act(self) -> None:
        """Somebody decides, publishes or signals something, or does once more what was done before."""
        dice = self._rng.random()
        if dice < 0.4:
            self.publish(self._event())
        elif dice < 0.55 and self.world.published:
            self.publish(self._rng.choice(self.world.published)[0])
        elif dice < 0.65 and self._decisions:
            self._rng.choice(self._decisions)()
        elif dice < 0.75:
            self._signal()
        else:
            self._decide()

    def _number(self) -> int:
        self._count += 1
        return self._count

    def _event(self) -> Event:
        name, key = self._rng.choice(NAMES), f"k{self._rng.randint(0, 3)}"
        payload = {"v": self._rng.randint(0, 3), "pad": "x" * self._rng.choice((0, 0, 400, 9_000))}
        return Event(event_name=name, event_id=f"e{self._number()}", correlation_key=key, payload=payload)

    def publish(self, event: Event) -> None:
        """Publish; the world remembers what was answered."""
        answers: list[int] = []
        self.world.published.append((event, answers))
        answers.append(self.world.events.publish(self.world.caller, event).matched)

    def _signal(self) -> None:
        runs = self.world.run_ids()
        if runs:
            request = f"signal-{self._number()}"
            payload = {"v": self._rng.randint(0, 3)}
            self._do("signal", self._rng.choice(runs), "", request, payload)

    def _decide(self) -> None:
        """Mostly about a step that waits, now and then about any."""
        runs = self.world.run_ids()
        if not runs:
            return
        run_id = self._rng.choice(runs)
        if self.world.damaged(run_id):
            return
        nodes = [node for node, _, _ in waiting(self.world, run_id)]
        if not nodes or self._rng.random() < 0.1:
            nodes = list(self.world.graph(run_id).by_ref)
        operation = self._rng.choice(("approve", "reject", "approve", "resolve"))
        self._do(operation, run_id, self._rng.choice(nodes), f"d{self._number()}", None)

    def _do(self, operation: str, run_id: str, node: str, request_id: str, payload: JSON) -> None:
        def send() -> None:
            world, caller = self.world, self.world.caller
            if operation == "signal":
                request = SignalRequest(request_id=request_id, name="ev.a", payload=payload)
                world.signals.signal(caller, run_id, request)
            elif operation == "resolve":
                world.decisions.resolve(
                    caller, run_id, node, Resolve(request_id=request_id, payload={"by": request_id})
                )
            else:
                verdict = Verdict(request_id=request_id, payload={"by": request_id})
                decide = world.decisions.approve if operation == "approve" else world.decisions.reject
                decide(caller, run_id, node, verdict)
            world.ledger.accepted(run_id, request_id, operation)

        self._decisions.append(send)
        self.world.ledger.say(f"        {operation} {run_id} {node} {request_id}")
        send()

    def free(self, turn: int) -> bool:
        """Give every step that waits what it waits for; whether there was any. In odd turns by hand."""
        found = False
        for run_id in self.world.run_ids():
            if self.world.stalled(run_id):
                continue
            for node, kind, entry in list(waiting(self.world, run_id)):
                found = True
                if kind is StepType.APPROVAL:
                    self._do(self._rng.choice(("approve", "reject")), run_id, node, f"free{self._number()}", None)
                elif turn % 2:
                    self._do("resolve", run_id, node, f"free{self._number()}", None)
                else:
                    self._supply(run_id, entry)
        return found

    def _supply(self, run_id: str, entry: NodeState) -> None:
        pause = msgspec.convert(self.world.value(run_id, entry.input), EventWait)
        for one in pause.on:
            for _ in range(one.count):
                event_id = f"e{self._number()}"
                key = one.correlation_key
                self.publish(Event(event_name=one.event_name, event_id=event_id, correlation_key=key, payload={"v": 9}))
