"""What step workers work with: for every backend, and for the simulator."""

from __future__ import annotations

from collections.abc import Mapping

from ductor.actions.action import Action
from ductor.actions.registry import ActionRegistry
from ductor.actions.settings import installed_models
from ductor.app.ai_journal import Journal
from ductor.app.ai_steps import AiSteps
from ductor.app.attempts import Attempts
from ductor.app.connected_run import Resolver
from ductor.app.own_actions import OwnActions
from ductor.app.worker import WorkerDoors
from ductor.bootstrap.doors import Doors
from ductor.bootstrap.use_cases import UseCases
from ductor.ports import Queue


def worker_doors(
    doors: Doors,
    *,
    steps: Queue,
    registry: ActionRegistry,
    connections: Resolver,
    step_actions: Mapping[str, Action],
) -> WorkerDoors:
    """What one worker works with."""
    return WorkerDoors(
        attempts=Attempts(doors.table),
        payloads=doors.payloads,
        registry=registry,
        intents=doors.intents,
        steps=steps,
        clock=doors.clock,
        ids=doors.ids,
        unit=doors.unit,
        faults=doors.faults,
        connections=connections,
        step_actions=step_actions,
    )


def ai_steps(
    use: UseCases, registry: ActionRegistry, connections: Resolver, environment: Mapping[str, str]
) -> Mapping[str, Action]:
    """What runs the AI steps, with the models of this installation. Raises ActionLoadError."""
    return AiSteps(
        providers=installed_models(environment, registry.connectors),
        registry=registry,
        connections=connections,
        journal=Journal(use.doors.table, use.doors.payloads),
        clock=use.doors.clock,
    ).actions()


def provide_own_actions(use: UseCases, registry: ActionRegistry) -> None:
    """Let steps trigger runs and publish events here."""
    own = OwnActions(table=use.doors.table, library=use.doors.library, triggers=use.triggers, events=use.events)
    registry.provide(own.actions())
