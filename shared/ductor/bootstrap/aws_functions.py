"""The Lambda functions: each builds what it needs, and imports no more than that.

A cold start pays for every import, so what only one function needs is imported where that one is built.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial
from typing import Any, Final

from ductor.adapters.aws.records import messages_of
from ductor.adapters.aws.timers import read_wake
from ductor.bootstrap.aws_parts import Parts, parts
from ductor.lambdas.telemetry import Handler
from ductor.model.intent import Intent

LEASE_MS: Final = 30_000
BRIDGE_LOOK_MS: Final = 1_000
"""How often a waiting poll looks for a task, at last: each look is a read request per task type."""


def coordinator(made: Parts | None = None) -> Handler:
    """The function of the intents queue."""
    from ductor.app.lifecycle import Lifecycle, Untold
    from ductor.app.subscriptions import Subscriptions
    from ductor.bootstrap import engine
    from ductor.lambdas.holding import HeldSends
    from ductor.lambdas.intents import IntentBatches
    from ductor.lambdas.poison import Poison
    from ductor.lambdas.telling import TellingCommitter

    of = made or parts()
    telemetry, doors = of.telemetry("coordinator"), of.doors

    def go_on(intents: Sequence[Intent]) -> None:
        of.use.batches.deliver(intents)  # imported when there is one

    told = Lifecycle(of.bus, Untold(of.table), Subscriptions(of.table, doors.library).heard)
    held = HeldSends(of.steps, told.tell)
    dispatcher = engine.dispatcher(doors, steps=of.steps, timers=of.timers, announce=held.announce, tasks=held)
    committer = engine.committer(doors, partial(TellingCommitter, tell=telemetry.tenant, disarm=of.timers.disarm))
    # A redrive deletes what it has sent, and the end of a stalled run overwrites what was to be told.
    at_once = engine.dispatcher(doors, steps=of.steps, timers=of.timers, announce=told.announce)
    stalls = engine.stalls(doors, committer, at_once)
    # It remembers no runs: their next batch may go to another process, and a commit upon an old state is billed too.
    applying = engine.coordinator(doors, committer, dispatcher, stalls, batches=go_on)
    batches = IntentBatches(applying, Poison(of.table, stalls), of.intents, held, telemetry)
    return telemetry.traced(lambda event, _: failures(batches.handle(messages_of(event))))


def step(made: Parts | None = None) -> Handler:
    """The function of the steps queue."""
    from ductor.app.connecting import Connecting
    from ductor.app.worker import Worker, WorkerSettings
    from ductor.bootstrap.workers import ai_steps, provide_own_actions, worker_doors
    from ductor.lambdas.steps import InvocationQueue, StepBatches

    of = made or parts()
    queue, registry = InvocationQueue(of.steps), of.actions()
    provide_own_actions(of.use, registry)
    connecting = Connecting(table=of.table, secrets=of.secrets, clock=of.clock, connectors=registry.connectors)
    doors = worker_doors(
        of.doors,
        steps=queue,
        registry=registry,
        connections=connecting,
        step_actions=ai_steps(of.use, registry, connecting, of.settings.environment),
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
        firing=of.use.scheduling(of.cron).firing,
        again=of.calls,
        clock=of.clock,
        telemetry=telemetry,
    )
    return telemetry.traced(lambda event, _: failures(batches.handle(messages_of(event))))


def sweeper(made: Parts | None = None) -> Handler:
    """The function that a schedule calls every minute."""
    from ductor.app.lifecycle import Untold

    of = made or parts()
    telemetry = of.telemetry("sweeper")

    def tell() -> int:
        told = Untold(of.table).tell(of.bus)
        telemetry.count("EventsToldLate", told)
        return told

    net = of.use.sweeper(of.use.scheduling(of.cron), tell)

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
    from ductor.app.prices import read_prices
    from ductor.bootstrap.api import api_deps

    of = made or parts()
    telemetry, registry = of.telemetry("api"), of.actions()
    deps = api_deps(
        of.use,
        identity=GatewayIdentity(),
        registry=registry,
        secrets=of.secrets,
        prices=read_prices(of.settings.environment.get("DUCTOR_PRICES", "")),
        bridge=of.use.bridge(rest, BRIDGE_LOOK_MS),
        scheduling=of.use.scheduling(of.cron),
        links=of.blobs,
    )
    return telemetry.traced(fitting(build_api(deps), of.clock, of.ids))


def event(made: Parts | None = None) -> Handler:
    """The function that the rule of the event bus calls."""
    from ductor.adapters.aws.bus import SOURCE, TENANT
    from ductor.lambdas.bus_events import BusEvents, Sources

    of = made or parts()
    telemetry = of.telemetry("event")
    bus_events = BusEvents(
        events=of.use.events,
        exists=of.use.tenants.exists,
        sources=Sources(of.settings.need("DUCTOR_EVENT_SOURCES"), TENANT),
        own_source=SOURCE,
        dead=of.events_dead(),
        telemetry=telemetry,
    )
    return telemetry.traced(lambda event, _: bus_events.handle(event))


def authorizer(made: Parts | None = None) -> Handler:
    """The Lambda authorizer, with simple responses. It lets every request through and says who asks, or why nobody."""
    from ductor.api.auth import authorizer_context
    from ductor.app.keys import Keys

    of = made or parts()
    telemetry = of.telemetry("authorizer")
    keys = Keys(of.table, of.clock, of.ids)  # it has no other door than the table
    return telemetry.traced(lambda event, _: {"isAuthorized": True, "context": authorizer_context(keys, event)})


def rest(ms: int) -> bool:
    """Wait inside an invocation; it is never cut short."""
    time.sleep(ms / 1000)
    return True


def failures(ids: list[str]) -> dict[str, Any]:
    """The answer of `ReportBatchItemFailures`: these records come again, all others are removed."""
    return {"batchItemFailures": [{"itemIdentifier": message_id} for message_id in ids]}
