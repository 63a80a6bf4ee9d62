"""The composition root of the Lambda functions: each builds what it needs, and imports no more than that.

A cold start pays for every import, so what only one function needs is imported where that one is built.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from ductor.adapters.aws.blobs import S3Blobs
from ductor.adapters.aws.bus import EventBridgeBus
from ductor.adapters.aws.clients import Clients
from ductor.adapters.aws.queue import SqsQueue
from ductor.adapters.aws.records import messages_of
from ductor.adapters.aws.scheduler import ScheduleTarget
from ductor.adapters.aws.secrets import SsmSecrets
from ductor.adapters.aws.table import DynamoTable
from ductor.adapters.aws.timers import AwsTimers, read_wake
from ductor.adapters.aws.unit import SeparateUnit
from ductor.adapters.local.system import SystemClock, SystemIds
from ductor.app.library import Library
from ductor.app.payloads import PayloadStore
from ductor.lambdas.telemetry import Telemetry
from ductor.model.enums import StepType
from ductor.ports import Clock, Ids

if TYPE_CHECKING:
    from ductor.actions.registry import ActionRegistry
    from ductor.adapters.aws.cron import AwsCronSchedules
    from ductor.app.batches import Batches
    from ductor.app.events import Events
    from ductor.app.scheduling import Scheduling
    from ductor.app.trigger import Triggers

Handler = Callable[[dict[str, Any], Any], dict[str, Any]]
"""(event, context) to answer, as Lambda calls it."""

LEASE_MS: Final = 30_000
BRIDGE_LOOK_MS: Final = 1_000
"""How often a waiting poll looks for a task, at last: each look is a read request per task type."""


class SettingsError(Exception):
    """A variable of the function's environment is missing; the message names it."""


@dataclass(frozen=True, slots=True)
class AwsSettings:
    """Where everything is, by the variables that the template sets."""

    environment: Mapping[str, str] = field(default_factory=lambda: os.environ)

    def need(self, name: str) -> str:
        """The value of a variable. Raises SettingsError."""
        value = self.environment.get(name, "")
        if not value:
            raise SettingsError(f"the environment variable {name} is not set")
        return value


class NoFaults:
    """Production has no simulated crashes."""

    def at(self, point: str) -> None:
        """Nothing happens here."""


class Parts:
    """What the functions are made of, each made when it is first asked for. One per process."""

    def __init__(self, settings: AwsSettings, clock: Clock, ids: Ids) -> None:
        self.settings = settings
        self.clock = clock
        self.ids = ids
        self.unit = SeparateUnit()
        self.faults = NoFaults()
        self.clients = Clients()

    @cached_property
    def table(self) -> DynamoTable:
        return DynamoTable(self.settings.need("DUCTOR_TABLE"))

    @cached_property
    def blobs(self) -> S3Blobs:
        return S3Blobs(self.settings.need("DUCTOR_BUCKET"), self.clients)

    @cached_property
    def payloads(self) -> PayloadStore:
        return PayloadStore(self.table, self.blobs)

    @cached_property
    def library(self) -> Library:
        return Library(self.table)

    @cached_property
    def secrets(self) -> SsmSecrets:
        return SsmSecrets(f"/ductor/{self.settings.need('DUCTOR_TABLE')}", self.clients)

    @cached_property
    def intents(self) -> SqsQueue:
        return self._queue("INTENTS")

    @cached_property
    def steps(self) -> SqsQueue:
        return self._queue("STEPS")

    @cached_property
    def bus(self) -> EventBridgeBus:
        return EventBridgeBus(self.settings.need("DUCTOR_BUS"), self.clients)

    @cached_property
    def calls(self) -> SqsQueue:
        return self._queue("CRON")

    @cached_property
    def timers(self) -> AwsTimers:
        target = ScheduleTarget(
            queue_arn=self.settings.need("DUCTOR_TIMERS_ARN"),
            group=self.settings.need("DUCTOR_SCHEDULE_GROUP"),
            role_arn=self.settings.need("DUCTOR_SCHEDULE_ROLE_ARN"),
        )
        return AwsTimers(target, self.settings.need("DUCTOR_TIMERS_URL"), self.clients, self.clock)

    @cached_property
    def cron(self) -> AwsCronSchedules:
        from ductor.adapters.aws.cron import AwsCronSchedules

        target = ScheduleTarget(
            queue_arn=self.settings.need("DUCTOR_CRON_ARN"),
            group=self.settings.need("DUCTOR_CRON_GROUP"),
            role_arn=self.settings.need("DUCTOR_CRON_ROLE_ARN"),
        )
        return AwsCronSchedules(target, self.clients, self.clock)

    def telemetry(self, function: str) -> Telemetry:
        """Logs, metrics and, where Lambda collects them, traces of a function."""
        return Telemetry(function, tracing="AWS_XRAY_DAEMON_ADDRESS" in self.settings.environment)

    def _queue(self, name: str) -> SqsQueue:
        """Who only sends to a queue need not know its dead letters."""
        dead = self.settings.environment.get(f"DUCTOR_{name}_DEAD_URL", "")
        return SqsQueue(self.settings.need(f"DUCTOR_{name}_URL"), dead, self.clients, self.clock)


def parts(settings: AwsSettings | None = None, clock: Clock | None = None, ids: Ids | None = None) -> Parts:
    """The parts of one process: of this environment, on the machine's clock, unless told otherwise."""
    return Parts(settings or AwsSettings(), clock or SystemClock(), ids or SystemIds())


def coordinator(made: Parts | None = None) -> Handler:
    """The function of the intents queue."""
    from ductor.app.attempts import Attempts
    from ductor.app.bridge_door import BridgeDoor
    from ductor.app.bridge_queue import BridgeQueue
    from ductor.app.coordinator import Coordinator
    from ductor.app.dispatch import Dispatcher
    from ductor.app.event_rows import EventRows
    from ductor.app.gate import Gate
    from ductor.app.lifecycle import Lifecycle, Untold
    from ductor.app.lineage import lineage
    from ductor.app.resends import Resends
    from ductor.app.stalls import Stalls
    from ductor.app.subscriptions import Subscriptions
    from ductor.app.wait_commands import WaitCommands
    from ductor.app.waiters import Waiters
    from ductor.lambdas.holding import HeldTasks
    from ductor.lambdas.intents import IntentBatches
    from ductor.lambdas.poison import Poison
    from ductor.lambdas.telling import TellingCommitter
    from ductor.model.command import Announce
    from ductor.steps.behaviours import BEHAVIOURS

    of = made or parts()
    telemetry = of.telemetry("coordinator")
    lines = lineage(
        table=of.table,
        payloads=of.payloads,
        intents=of.intents,
        clock=of.clock,
        ids=of.ids,
        library=of.library,
        gate=Gate(of.table),
    )
    told = Lifecycle(of.bus, Untold(of.table), Subscriptions(of.table, of.library).heard)
    waits = WaitCommands(Waiters(of.table, of.payloads), EventRows(of.table, of.clock), of.clock)
    tasks = HeldTasks(of.steps)
    dispatcher = Dispatcher(
        intents=of.intents,
        steps=tasks,
        timers=of.timers,
        attempts=Attempts(of.table),
        resends=Resends(of.steps, of.clock),
        clock=of.clock,
        ids=of.ids,
        handlers={**waits.handlers(), **lines.handlers, Announce: told.announce},
        doors={**lines.doors, StepType.BRIDGE: BridgeDoor(BridgeQueue(of.table), Attempts(of.table), of.clock)},
    )
    committer = TellingCommitter(
        table=of.table,
        payloads=of.payloads,
        definitions=lambda tenant, definition_id: of.library.load(tenant, definition_id)[1],
        behaviours=BEHAVIOURS,
        clock=of.clock,
        faults=of.faults,
        tell=telemetry.tenant,
        disarm=of.timers.disarm,
    )
    stalls = Stalls(
        table=of.table,
        committer=committer,
        dispatcher=dispatcher.sending(of.steps),  # a redrive deletes what it has sent
        clock=of.clock,
        ids=of.ids,
        faults=of.faults,
    )
    # It remembers no runs: their next batch may go to another process, and a commit upon an old state is billed too.
    engine = Coordinator(
        table=of.table,
        committer=committer,
        dispatcher=dispatcher,
        stalls=stalls,
        unit=of.unit,
        faults=of.faults,
        batches=lambda intents: _batches(of).deliver(intents),  # imported when there is one
    )
    batches = IntentBatches(engine, Poison(of.table, stalls), of.intents, tasks, telemetry)
    return telemetry.traced(lambda event, _: failures(batches.handle(messages_of(event))))


def step(made: Parts | None = None) -> Handler:
    """The function of the steps queue."""
    from ductor.actions.settings import installed_models
    from ductor.app.ai_journal import Journal
    from ductor.app.ai_steps import AiSteps
    from ductor.app.attempts import Attempts
    from ductor.app.connecting import Connecting
    from ductor.app.own_actions import OwnActions
    from ductor.app.worker import Worker, WorkerDoors, WorkerSettings
    from ductor.lambdas.steps import InvocationQueue, StepBatches

    of = made or parts()
    queue = InvocationQueue(of.steps)
    registry = actions(of.settings)
    registry.provide(
        OwnActions(table=of.table, library=of.library, triggers=_triggers(of), events=_events(of)).actions()
    )
    connecting = Connecting(table=of.table, secrets=of.secrets, clock=of.clock, connectors=registry.connectors)
    ai = AiSteps(
        providers=installed_models(of.settings.environment, registry.connectors),
        registry=registry,
        connections=connecting,
        journal=Journal(of.table, of.payloads),
        clock=of.clock,
    )
    doors = WorkerDoors(
        attempts=Attempts(of.table),
        payloads=of.payloads,
        registry=registry,
        intents=of.intents,
        steps=queue,
        clock=of.clock,
        ids=of.ids,
        unit=of.unit,
        faults=of.faults,
        connections=connecting,
        step_actions=ai.actions(),
    )
    worker = Worker(doors, WorkerSettings(name=f"lambda-{of.ids.token(9)}", lease_ms=LEASE_MS))
    telemetry = of.telemetry("step")
    batches = StepBatches(worker, queue, telemetry)

    def work(event: dict[str, Any], context: Any) -> dict[str, Any]:
        return failures(batches.handle(messages_of(event), context.get_remaining_time_in_millis))

    return telemetry.traced(work)


def timer(made: Parts | None = None) -> Handler:
    """The function of the timers queue."""
    from ductor.lambdas.timers import TimerBatches

    of = made or parts()
    telemetry = of.telemetry("timer")
    batches = TimerBatches(
        read=read_wake,
        timers=of.timers,
        intents=of.intents,
        clock=of.clock,
        ids=of.ids,
        telemetry=telemetry,
    )
    return telemetry.traced(lambda event, _: failures(batches.handle(messages_of(event))))


def schedule(made: Parts | None = None) -> Handler:
    """The function of the schedule queue, into which EventBridge Scheduler puts its calls."""
    from ductor.adapters.aws.cron import read_call
    from ductor.lambdas.schedules import ScheduleBatches

    of = made or parts()
    telemetry = of.telemetry("schedule")
    batches = ScheduleBatches(
        read=read_call,
        firing=scheduling(of).firing,
        again=of.calls,
        clock=of.clock,
        telemetry=telemetry,
    )
    return telemetry.traced(lambda event, _: failures(batches.handle(messages_of(event))))


def scheduling(of: Parts, triggers: Triggers | None = None) -> Scheduling:
    """Schedules that EventBridge Scheduler calls for."""
    from ductor.app.scheduling import Scheduling

    made = triggers or _triggers(of)
    return Scheduling(table=of.table, triggers=made, library=of.library, clock=of.clock, ids=of.ids, outside=of.cron)


def sweeper(made: Parts | None = None) -> Handler:
    """The function that a schedule calls every minute."""
    from ductor.app.housekeeping import housekeeping
    from ductor.app.lifecycle import Untold
    from ductor.app.sweeper import Sweeper

    of = made or parts()
    telemetry = of.telemetry("sweeper")

    def tell() -> int:
        told = Untold(of.table).tell(of.bus)
        telemetry.count("EventsToldLate", told)
        return told

    net = Sweeper(
        table=of.table,
        intents=of.intents,
        clock=of.clock,
        ids=of.ids,
        also=(
            *housekeeping(table=of.table, payloads=of.payloads, intents=of.intents, clock=of.clock, ids=of.ids),
            _batches(of).sweep,
            *scheduling(of).chores,
            tell,
        ),
    )

    def sweep(_event: dict[str, Any], _context: Any) -> dict[str, Any]:
        woken = net.sweep()
        telemetry.count("RunsSwept", woken)
        telemetry.flush()
        return {"woken": woken}

    return telemetry.traced(sweep)


def api(made: Parts | None = None) -> Handler:
    """The function behind the HTTP API. It takes the caller from the authorizer in front of it."""
    from ductor.api.answer_size import fitting
    from ductor.api.app import build_api
    from ductor.api.auth import GatewayIdentity
    from ductor.api.deps import ApiDeps
    from ductor.app.administration import Administration
    from ductor.app.bridge import Bridge
    from ductor.app.bridge_doors import BridgeDoors
    from ductor.app.control import Controls
    from ductor.app.decisions import Decisions
    from ductor.app.definitions import Definitions
    from ductor.app.keys import Keys
    from ductor.app.operations import Operations
    from ductor.app.prices import read_prices
    from ductor.app.run_cost import RunCosts
    from ductor.app.runs import Runs
    from ductor.app.signals import Signals
    from ductor.app.successors import Continuations
    from ductor.app.tenants import Tenants
    from ductor.app.tree import RunTrees

    of = made or parts()
    telemetry = of.telemetry("api")
    tenants, registry = Tenants(of.table, of.clock, of.ids), actions(of.settings)
    definitions = Definitions(of.table, of.clock, of.ids, registry, tenants, of.cron)
    deps = ApiDeps(
        identity=GatewayIdentity(),
        keys=Keys(of.table, of.clock, of.ids),
        definitions=definitions,
        triggers=_triggers(of),
        controls=Controls(table=of.table, intents=of.intents, clock=of.clock, ids=of.ids),
        decisions=Decisions(
            table=of.table,
            payloads=of.payloads,
            library=of.library,
            intents=of.intents,
            unit=of.unit,
            clock=of.clock,
            ids=of.ids,
        ),
        continuations=Continuations(
            table=of.table,
            payloads=of.payloads,
            intents=of.intents,
            unit=of.unit,
            clock=of.clock,
            ids=of.ids,
        ),
        trees=RunTrees(of.table),
        costs=RunCosts(of.table, read_prices(of.settings.environment.get("DUCTOR_PRICES", ""))),
        schedules=scheduling(of).schedules,
        operations=Operations(
            table=of.table,
            payloads=of.payloads,
            library=of.library,
            intents=of.intents,
            unit=of.unit,
            clock=of.clock,
            ids=of.ids,
        ),
        signals=Signals(
            table=of.table,
            payloads=of.payloads,
            intents=of.intents,
            unit=of.unit,
            clock=of.clock,
            ids=of.ids,
        ),
        events=_events(of),
        bridge=Bridge(
            BridgeDoors(
                table=of.table,
                payloads=of.payloads,
                intents=of.intents,
                unit=of.unit,
                clock=of.clock,
                ids=of.ids,
                faults=of.faults,
            ),
            pause=rest,
            look_ms=BRIDGE_LOOK_MS,
        ),
        runs=Runs(table=of.table, payloads=of.payloads, library=of.library, tenants=tenants, links=of.blobs),
        admin=Administration(
            table=of.table,
            secrets=of.secrets,
            clock=of.clock,
            ids=of.ids,
            connectors=registry.connectors,
            definitions=definitions,
            tenants=tenants,
        ),
        clock=of.clock,
        ids=of.ids,
    )
    return telemetry.traced(fitting(build_api(deps), of.clock, of.ids))


def event(made: Parts | None = None) -> Handler:
    """The function that the rule of the event bus calls."""
    from ductor.adapters.aws.bus import SOURCE, TENANT
    from ductor.app.tenants import Tenants
    from ductor.lambdas.bus_events import BusEvents, Sources

    of = made or parts()
    telemetry = of.telemetry("event")
    bus_events = BusEvents(
        events=_events(of),
        exists=Tenants(of.table, of.clock, of.ids).exists,
        sources=Sources(of.settings.need("DUCTOR_EVENT_SOURCES"), TENANT),
        own_source=SOURCE,
        dead=SqsQueue(of.settings.need("DUCTOR_EVENTS_DEAD_URL"), "", of.clients, of.clock),
        telemetry=telemetry,
    )
    return telemetry.traced(lambda event, _: bus_events.handle(event))


def _batches(of: Parts) -> Batches:
    """Controls of many runs, for the functions that move them on."""
    from ductor.app.batches import Batches
    from ductor.app.control import Controls

    controls = Controls(table=of.table, intents=of.intents, clock=of.clock, ids=of.ids)
    return Batches(table=of.table, controls=controls, intents=of.intents, clock=of.clock, ids=of.ids)


def _triggers(of: Parts) -> Triggers:
    """What starts runs, for every function that does."""
    from ductor.app.gate import Gate
    from ductor.app.trigger import Triggers

    return Triggers(
        table=of.table,
        payloads=of.payloads,
        intents=of.intents,
        unit=of.unit,
        clock=of.clock,
        ids=of.ids,
        library=of.library,
        gate=Gate(of.table),
    )


def _events(of: Parts) -> Events:
    """What delivers events, from the API and from the bus."""
    from ductor.app.event_rows import EventRows
    from ductor.app.event_triggers import EventTriggers
    from ductor.app.events import Events
    from ductor.app.gate import Gate
    from ductor.app.waiters import Waiters

    return Events(
        waiters=Waiters(of.table, of.payloads),
        rows=EventRows(of.table, of.clock),
        intents=of.intents,
        unit=of.unit,
        clock=of.clock,
        ids=of.ids,
        faults=of.faults,
        starts=EventTriggers(table=of.table, library=of.library, triggers=_triggers(of), gate=Gate(of.table)),
    )


def rest(ms: int) -> bool:
    """Wait inside an invocation; it is never cut short."""
    time.sleep(ms / 1000)
    return True


def authorizer(made: Parts | None = None) -> Handler:
    """The Lambda authorizer, with simple responses. It lets every request through and says who asks, or why nobody."""
    from ductor.api.auth import authorizer_context
    from ductor.app.keys import Keys

    of = made or parts()
    telemetry = of.telemetry("authorizer")
    keys = Keys(of.table, of.clock, of.ids)
    return telemetry.traced(lambda event, _: {"isAuthorized": True, "context": authorizer_context(keys, event)})


def actions(settings: AwsSettings) -> ActionRegistry:
    """Every action of this installation: built in, from entry points, and from the modules in DUCTOR_ACTIONS."""
    from ductor.actions.settings import installed_actions
    from ductor.steps.duration import parse_duration

    return installed_actions(settings.environment, parse_duration)


def failures(ids: list[str]) -> dict[str, Any]:
    """The answer of `ReportBatchItemFailures`: these records come again, all others are removed."""
    return {"batchItemFailures": [{"itemIdentifier": message_id} for message_id in ids]}
