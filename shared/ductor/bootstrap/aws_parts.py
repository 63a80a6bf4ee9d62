"""Where everything of a stack is, and the adapters that reach it, each made when it is first asked for."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from ductor.adapters.aws.blobs import S3Blobs
from ductor.adapters.aws.bus import EventBridgeBus
from ductor.adapters.aws.clients import Clients
from ductor.adapters.aws.queue import SqsQueue
from ductor.adapters.aws.scheduler import ScheduleTarget
from ductor.adapters.aws.secrets import SsmSecrets
from ductor.adapters.aws.table import DynamoTable
from ductor.adapters.aws.timers import AwsTimers
from ductor.adapters.aws.unit import SeparateUnit
from ductor.adapters.local.system import SystemClock, SystemIds
from ductor.lambdas.telemetry import Telemetry
from ductor.ports import Clock, Ids

if TYPE_CHECKING:
    from ductor.actions.registry import ActionRegistry
    from ductor.adapters.aws.cron import AwsCronSchedules
    from ductor.bootstrap.doors import Doors
    from ductor.bootstrap.use_cases import UseCases


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


class Parts:
    """What the functions are made of. One per process."""

    def __init__(self, settings: AwsSettings, clock: Clock, ids: Ids) -> None:
        self.settings = settings
        self.clock = clock
        self.ids = ids
        self.clients = Clients()

    @cached_property
    def doors(self) -> Doors:
        """What every use case works with."""
        from ductor.app.gate import Gate
        from ductor.app.library import Library
        from ductor.app.payloads import PayloadStore
        from ductor.bootstrap.doors import Doors, NoFaults

        return Doors(
            table=self.table,
            payloads=PayloadStore(self.table, self.blobs),
            library=Library(self.table),
            gate=Gate(self.table),
            intents=self.intents,
            unit=SeparateUnit(),
            clock=self.clock,
            ids=self.ids,
            faults=NoFaults(),
        )

    @cached_property
    def use(self) -> UseCases:
        from ductor.bootstrap.use_cases import UseCases

        return UseCases(self.doors)

    @cached_property
    def table(self) -> DynamoTable:
        return DynamoTable(self.settings.need("DUCTOR_TABLE"))

    @cached_property
    def blobs(self) -> S3Blobs:
        return S3Blobs(self.settings.need("DUCTOR_BUCKET"), self.clients)

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
    def calls(self) -> SqsQueue:
        return self._queue("CRON")

    @cached_property
    def bus(self) -> EventBridgeBus:
        return EventBridgeBus(self.settings.need("DUCTOR_BUS"), self.clients)

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

    def actions(self) -> ActionRegistry:
        """Every action of this installation: built in, from entry points, and from the modules in DUCTOR_ACTIONS."""
        from ductor.actions.settings import installed_actions
        from ductor.steps.duration import parse_duration

        return installed_actions(self.settings.environment, parse_duration)

    def telemetry(self, function: str) -> Telemetry:
        """Logs, metrics and, where Lambda collects them, traces of a function."""
        return Telemetry(function, tracing="AWS_XRAY_DAEMON_ADDRESS" in self.settings.environment)

    def events_dead(self) -> SqsQueue:
        """Where events of the bus go that are no events for any tenant."""
        return SqsQueue(self.settings.need("DUCTOR_EVENTS_DEAD_URL"), "", self.clients, self.clock)

    def _queue(self, name: str) -> SqsQueue:
        """Who only sends to a queue need not know its dead letters."""
        dead = self.settings.environment.get(f"DUCTOR_{name}_DEAD_URL", "")
        return SqsQueue(self.settings.need(f"DUCTOR_{name}_URL"), dead, self.clients, self.clock)


def parts(settings: AwsSettings | None = None, clock: Clock | None = None, ids: Ids | None = None) -> Parts:
    """The parts of one process: of this environment, on the machine's clock, unless told otherwise."""
    return Parts(settings or AwsSettings(), clock or SystemClock(), ids or SystemIds())
