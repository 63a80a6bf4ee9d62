"""A whole installation in memory on virtual time: the real use cases, a few processes, and faults where ports are.

Everything happens in one thread and follows from the seed. Tests drive it step by step; `schedule` does so at random.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any, Final, cast
from unittest.mock import patch

import msgspec

from ductor.actions.action import Action
from ductor.app.access import ALL_SCOPES, Caller
from ductor.app.admission import TriggerRequest
from ductor.app.ai_journal import Journal
from ductor.app.commit import Committer
from ductor.app.connected_run import Resolver
from ductor.app.coordinator import Coordinator
from ductor.app.decisions import Verdict
from ductor.app.gate import Gate
from ductor.app.library import Library, plan_item, row_item
from ductor.app.lifecycle import Lifecycle, Untold
from ductor.app.loops import TimerLoop
from ductor.app.node_controls import NodeRequest
from ductor.app.payloads import PayloadStore
from ductor.app.reset import ResetRequest
from ductor.app.slot_repair import SlotSweep
from ductor.app.sweeper import Sweeper
from ductor.app.worker import Worker, WorkerSettings
from ductor.bootstrap import engine
from ductor.bootstrap.doors import Doors
from ductor.bootstrap.use_cases import UseCases
from ductor.bootstrap.workers import worker_doors
from ductor.engine.behaviour import Behaviour
from ductor.engine.context import NodeContext
from ductor.engine.graph import Graph, compile_graph
from ductor.model.definition import Definition, DefinitionRow, Step
from ductor.model.enums import DefinitionStatus, StepType
from ductor.model.intent import Intent
from ductor.model.json import JSON
from ductor.model.transition import Transition
from ductor.model.waiting import Event
from ductor.ports import Put, QueueName
from ductor.steps.behaviours import BEHAVIOURS
from ductor.testing.actors import LEASE_MS, CoordinatorActor, WorkerActor
from ductor.testing.bridges import Bridges, OutsideWorker
from ductor.testing.chaos import PROFILES, Chaos, Profile, draw
from ductor.testing.doubles import AnyConnection, Doubles
from ductor.testing.faulty import FaultyBlobs, FaultyQueue, FaultyTable, FaultyTimers, SkewedClock
from ductor.testing.ledger import Ledger
from ductor.testing.listening import Listening, listen
from ductor.testing.memory import MemoryBlobs, MemoryQueue, MemoryTable, MemoryTimers, NullUnit, SeededIds, VirtualClock
from ductor.testing.models import Talks
from ductor.testing.records import Records
from ductor.testing.slots import Crowd

TENANT: Final = "t"
COORDINATORS: Final = 2
WORKERS: Final = 2
OUTSIDERS: Final = 2


class World(Records):
    """`coordinators`, `workers`, `timer`, `sweeper` are the processes; `table`, `intents`, `steps`, `timers`, `blobs`
    the stores behind the faults; `ledger` what was seen. Use `limits()` around anything that ticks.
    """

    def __init__(
        self,
        seed: int = 0,
        profile: Profile = PROFILES["calm"],
        *,
        behaviours: Mapping[StepType, Behaviour] = BEHAVIOURS,
        traced: bool = False,
    ) -> None:
        self.seed = seed
        self.profile = profile
        self.rng = random.Random(seed)
        self.clock = VirtualClock()
        self.ids = SeededIds(seed, self.clock)
        self.ledger = Ledger(traced=traced)
        self.chaos = Chaos(self.rng, draw(profile, self.rng))
        if traced:
            self.chaos.note = self._note
        self.broken = False
        self.sole_since = 0
        self.published: list[tuple[Event, list[int]]] = []
        self.batches: dict[str, frozenset[str]] = {}  # the runs that there were when each was asked for first
        self.behaviours = behaviours
        if self.chaos.chances.fault:
            self.behaviours = {kind: cast(Behaviour, Breakable(one, self)) for kind, one in behaviours.items()}
        self._stores()
        self._processes()
        self.caller = Caller("key", TENANT, frozenset(ALL_SCOPES), roles=frozenset({"operator"}))
        self.bridges = Bridges()
        self.outsiders = [self._outsider(f"outsider-{n}") for n in range(OUTSIDERS)]

    def _stores(self) -> None:
        self._pinned: dict[str, str] = {}
        self.table = MemoryTable()
        self.blobs = MemoryBlobs()
        self.timers = MemoryTimers()
        self.intents = MemoryQueue(QueueName.INTENTS, self.clock)
        self.steps = MemoryQueue(QueueName.STEPS, self.clock)
        self._table = FaultyTable(self.table, self.chaos, self.ledger)
        self._blobs = FaultyBlobs(self.blobs, self.chaos)
        self._timers = FaultyTimers(self.timers, self.chaos)
        self._intents = FaultyQueue(self.intents, self.chaos)
        self._steps = FaultyQueue(self.steps, self.chaos)
        self.payloads = PayloadStore(self.table, self.blobs)
        self.doors = Doors(
            table=self._table,
            payloads=PayloadStore(self._table, self._blobs),
            library=Library(self.table),
            gate=self._gate(),
            intents=self._intents,
            unit=NullUnit(),
            clock=self.clock,
            ids=self.ids,
            faults=self.chaos,
        )
        self.use = UseCases(self.doors)
        self.bus = Listening(lambda: self.events, self.chaos)
        self.listener: Definition | None = None
        self._graphs: dict[str, Graph] = {}
        self.crowd = Crowd(self._known)
        self.ledger.onlookers.append(self.crowd.stored)

    def _processes(self) -> None:
        doubles = self._doubles()
        self._registry = doubles.registry()
        self.coordinators = [self._coordinator_actor(f"coordinator-{n}") for n in range(COORDINATORS)]
        self.workers = [self._worker_actor(f"worker-{n}", doubles) for n in range(WORKERS)]
        clock = SkewedClock(self.clock, self.chaos.chances.early_ms)
        self.timer = TimerLoop(self._timers, self._intents, NullUnit(), clock, self.ids)
        slots = SlotSweep(table=self._table, intents=self._intents, clock=self.clock, ids=self.ids)
        self.sweeper = Sweeper(
            table=self._table,
            intents=self._intents,
            clock=self.clock,
            ids=self.ids,
            also=(slots.sweep, self.tell, self._sweep_batches),
        )
        self.triggers, self.controls, self.events = self.use.triggers, self.use.controls, self.use.events
        self.signals, self.decisions = self.use.signals, self.use.decisions
        self.operations, self.continuations = self.use.operations, self.use.continuations

    def _doubles(self) -> Doubles:
        """What the workers run."""
        return Doubles(self.ledger)

    def _resolver(self) -> Resolver:
        """Where the workers find connections."""
        return AnyConnection()

    def _step_actions(self) -> Mapping[str, Action]:
        """What the workers run for step types that are no `action`."""
        talks = Talks(self.ledger, self.table, self.payloads)
        return talks.step_actions(Journal(self._table, self.doors.payloads), self._resolver(), self.clock)

    def _gate(self) -> Gate | None:
        """What stands before new runs; None lets everything in."""
        return None

    def _skewed(self) -> SkewedClock:
        most = self.chaos.chances.skew_ms
        return SkewedClock(self.clock, self.rng.randint(-most, most) if most else 0)

    def _coordinator_actor(self, name: str) -> CoordinatorActor:
        clock = self._skewed()
        cached = self.rng.choice(self.profile.cached_runs)
        return CoordinatorActor(name, self._intents, lambda: self._coordinator(clock, cached))

    def _coordinator(self, clock: SkewedClock, cached_runs: int) -> Coordinator:
        doors = replace(self.doors, clock=clock, library=Library(self._table))
        told = Lifecycle(self.bus, Untold(self._table) if self.profile.sweeper else None)
        dispatcher = engine.dispatcher(doors, steps=self._steps, timers=self._timers, announce=told.announce)
        committer = Committer(
            table=doors.table,
            payloads=doors.payloads,
            definitions=lambda tenant, definition_id: self._known(definition_id),
            behaviours=self.behaviours,
            clock=clock,
            faults=doors.faults,
        )
        stalls = engine.stalls(doors, committer, dispatcher)
        return engine.coordinator(
            doors, committer, dispatcher, stalls, batches=self._go_on_with_batch, cached_runs=cached_runs
        )

    def _worker_actor(self, name: str, doubles: Doubles) -> WorkerActor:
        clock = self._skewed()

        def build(own: str) -> Worker:
            doors = worker_doors(
                replace(self.doors, clock=clock),
                steps=self._steps,
                registry=self._registry,
                connections=self._resolver(),
                step_actions=self._step_actions(),
            )
            return Worker(doors, WorkerSettings(name=own, lease_ms=LEASE_MS, sole_since=self.sole_since))

        return WorkerActor(name, self._steps, clock, doubles, self.ledger, build)

    def _outsider(self, name: str) -> OutsideWorker:
        clock = self._skewed()
        bridge = UseCases(replace(self.doors, clock=clock)).bridge(lambda ms: False, 1)
        return OutsideWorker(name, bridge, self.caller, clock, self.rng, self.bridges, self.ledger)

    @contextmanager
    def limits(self) -> Iterator[None]:
        """The engine's bounds as the profile wants them. Process-wide while it lasts."""
        with ExitStack() as stack:
            if self.profile.starts_per_tick:
                stack.enter_context(patch("ductor.engine.tick.STARTS_PER_TICK", self.profile.starts_per_tick))
            if self.profile.header_bytes:
                stack.enter_context(patch("ductor.app.commit.MAX_HEADER_BYTES", self.profile.header_bytes))
            stack.enter_context(patch("ductor.steps.scatter.ITEMS_PER_PAGE", 2))
            stack.enter_context(patch("ductor.engine.tick.PAGES_PER_TICK", 2))
            stack.enter_context(patch.multiple("ductor.engine.due", PAGES_PER_TICK=2, LOOKS_PER_TICK=3))
            stack.enter_context(patch("ductor.steps.gather.PAGES_PER_TICK", 2))
            stack.enter_context(patch.multiple("ductor.app.batches", PAGE=2, PAGES_AT_ONCE=1, PAGES_PER_MESSAGE=1))
            yield

    def publish(self, definition: Definition) -> str:
        """The id of the definition, stored as published. It is not validated."""
        definition_id = f"d{len(self._graphs)}"
        row = DefinitionRow(
            id=definition_id,
            tenant=TENANT,
            family_slug=definition.family_slug,
            status=DefinitionStatus.PUBLISHED,
            version=1,
            document={"triggers": msgspec.to_builtins(definition.triggers)},
        )
        self.table.write([Put(row_item(row, 1)), Put(plan_item(TENANT, definition_id, definition))])
        if definition.triggers:
            listen(self.table, row)
        self._graphs[definition_id] = compile_graph(definition, self.behaviours)
        return definition_id

    def steps_published(self) -> Iterator[Step]:
        """The steps of all definitions that were published here."""
        for graph in self._graphs.values():
            yield from graph.definition.steps

    def tell(self) -> int:
        """The sweeper's chore: tell what the bus did not take."""
        return Untold(self._table).tell(self.bus)

    def _go_on_with_batch(self, intents: Sequence[Intent]) -> None:
        self.operations.batches.deliver(intents)

    def _sweep_batches(self) -> int:
        """The sweeper's chore: batches whose message was lost go on."""
        return self.operations.batches.sweep()

    def _known(self, definition_id: str) -> Definition:
        return self._compiled(definition_id).definition

    def _compiled(self, definition_id: str) -> Graph:
        """The graph of what was published here, or generated by a run."""
        if definition_id not in self._graphs:
            definition = Library(self.table).load(TENANT, definition_id)[1]
            self._graphs[definition_id] = compile_graph(definition, self.behaviours)
        return self._graphs[definition_id]

    def trigger(self, definition_id: str, value: JSON = None, key: str | None = None) -> str:
        """Start a run: its id."""
        request = TriggerRequest(input={} if value is None else value, idempotency_key=key)
        return self.triggers.trigger(self.caller, definition_id, request).run_id

    def control(self, run_id: str, operation: str, request_id: str) -> None:
        """Ask for a control; what the API accepts is remembered."""
        self.controls.send(self.caller, run_id, operation, request_id, reason="simulated")
        self.ledger.accepted(run_id, request_id, operation)

    def reset(self, run_id: str, seq: int, request_id: str, preserve: tuple[str, ...] = (), **inputs: JSON) -> str:
        """Fork a run: the fork's id."""
        request = ResetRequest(
            request_id=request_id, transition_seq=seq, input_overrides=inputs, preserve_outputs=preserve
        )
        fork_id = self.operations.resets.reset(self.caller, run_id, request)
        self.ledger.accepted(run_id, request_id, "reset")
        return fork_id

    def continue_as_new(self, run_id: str, operation: str, request_id: str) -> None:
        """Ask a run to go on as another one; what the API accepts is remembered. Half of the requests may discard."""
        discard = sum(request_id.encode()) % 2 == 0
        context = {"from": run_id, "text": "x" * 9_000} if discard else {}
        self.continuations.send(self.caller, run_id, request_id, "simulated", context, discard_pending=discard)
        self.ledger.accepted(run_id, request_id, operation)

    def control_node(self, run_id: str, node: str, operation: str, request_id: str) -> None:
        """Ask for a control of one step; what the API accepts is remembered."""
        request = NodeRequest(request_id=request_id, reason="simulated")
        if operation == "updateRetryPolicy":
            request = NodeRequest(request_id=request_id, retry={"max_attempts": 2})
        elif operation == "updateTimeout":
            request = NodeRequest(request_id=request_id, timeout_ms=30_000)
        self.operations.nodes.send(self.caller, run_id, node, operation, request)
        self.ledger.accepted(run_id, request_id, f"node.{operation}")

    def decide(self, run_id: str, node: str, operation: str, request_id: str) -> None:
        """Approve or reject a step; what the API accepts is remembered."""
        verdict = Verdict(request_id=request_id, payload={"by": request_id})
        send = self.decisions.approve if operation == "approve" else self.decisions.reject
        send(self.caller, run_id, node, verdict)
        self.ledger.accepted(run_id, request_id, operation)

    def graph(self, run_id: str) -> Graph:
        """The definition that the run is pinned to for ever."""
        known = self._pinned.get(run_id)
        if known is None:
            known = self._pinned[run_id] = self.state(run_id).origin.definition_id
        return self._compiled(known)

    def statuses(self, run_id: str) -> dict[str, str]:
        """The status of each step."""
        nodes = self.state(run_id).root.nodes
        return {ref: nodes[ref].status.value if ref in nodes else "pending" for ref in self.graph(run_id).by_ref}

    def mend(self) -> None:
        """Take back every fault of the engine and every damage."""
        self.broken = False
        for run_id in self.run_ids():
            self.repair(run_id)

    def _note(self, what: str, detail: str) -> None:
        self.ledger.say(f"        ! {what}: {detail}")


class Breakable:
    """A step type whose start fails for as long as the world is broken."""

    def __init__(self, inner: Behaviour, world: World) -> None:
        self._inner = inner
        self._world = world

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def start(self, ctx: NodeContext) -> Iterable[Transition]:
        if self._world.broken:
            raise RuntimeError("a fault that comes back at every try")
        return self._inner.start(ctx)
