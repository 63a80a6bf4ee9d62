"""The composition root: the only place where adapters meet use cases, and where configuration is read."""

from __future__ import annotations

import fcntl
import os
import shlex
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Protocol

from ductor.actions.errors import ActionLoadError
from ductor.actions.registry import ActionRegistry
from ductor.actions.settings import installed_actions, installed_models
from ductor.adapters.local.bell import MessageBell
from ductor.adapters.local.blobs import SqliteBlobs
from ductor.adapters.local.database import Database
from ductor.adapters.local.fifo import SqliteFifoQueue
from ductor.adapters.local.queue import SqliteQueue
from ductor.adapters.local.secrets import FileSecrets
from ductor.adapters.local.system import SystemClock, SystemIds
from ductor.adapters.local.table import SqliteTable
from ductor.adapters.local.timers import SqliteTimers
from ductor.adapters.local.unit import SqliteUnit
from ductor.app.action_pool import ActionPool
from ductor.app.administration import Administration
from ductor.app.ai_journal import Journal
from ductor.app.ai_steps import AiSteps
from ductor.app.attempts import Attempts
from ductor.app.bridge import Bridge
from ductor.app.bridge_door import BridgeDoor
from ductor.app.bridge_doors import BridgeDoors
from ductor.app.bridge_queue import BridgeQueue
from ductor.app.commit import Committer
from ductor.app.control import Controls
from ductor.app.coordinator import Coordinator
from ductor.app.decisions import Decisions
from ductor.app.definitions import Definitions
from ductor.app.dispatch import Dispatcher
from ductor.app.engine_loop import EngineLoop
from ductor.app.event_rows import EventRows
from ductor.app.event_triggers import EventTriggers
from ductor.app.events import Events
from ductor.app.gate import Gate
from ductor.app.housekeeping import housekeeping
from ductor.app.keys import Keys
from ductor.app.library import Library
from ductor.app.lifecycle import Lifecycle
from ductor.app.lineage import lineage
from ductor.app.loopback import Loopback
from ductor.app.loops import SweeperLoop, TimerLoop
from ductor.app.operations import Operations
from ductor.app.own_actions import OwnActions
from ductor.app.payloads import PayloadStore
from ductor.app.prices import Prices, PricesError, read_prices
from ductor.app.resends import Resends
from ductor.app.run_cost import RunCosts
from ductor.app.runs import Runs
from ductor.app.scheduling import Scheduling
from ductor.app.signals import Signals
from ductor.app.stalls import Stalls
from ductor.app.successors import Continuations
from ductor.app.sweeper import Sweeper
from ductor.app.tenants import Tenants
from ductor.app.tree import RunTrees
from ductor.app.trigger import Triggers
from ductor.app.wait_commands import WaitCommands
from ductor.app.waiters import Waiters
from ductor.app.worker import Worker, WorkerDoors, WorkerSettings
from ductor.model.command import Announce
from ductor.model.definition import DefinitionRow
from ductor.model.enums import StepType
from ductor.ports import DeadLetters, QueueName, UnavailableError
from ductor.steps.behaviours import BEHAVIOURS
from ductor.steps.duration import parse_duration

DEFAULT_WORKERS: Final = 16
LEASE_MS: Final = 10_000
CACHED_RUNS: Final = 2_000
STOP_SECONDS: Final = 10
MAX_PURGED: Final = 5_000
"""Rows whose time is over that one sweep removes."""
BRIDGE_LOOK_MS: Final = 250
"""A worker that waits for a task learns of one after so long at the latest."""


class StartError(Exception):
    """The local application cannot start; the message says why in one sentence."""


@dataclass(frozen=True, slots=True)
class LocalSettings:
    """How to run locally. `url` is written into the env files; `workers` are waiting actions that run at once."""

    url: str = "http://localhost:8080"
    workers: int | None = None
    environment: Mapping[str, str] = field(default_factory=lambda: os.environ)

    @property
    def workflow_folder(self) -> Path | None:
        """DUCTOR_WORKFLOWS_DIR: a folder with YAML files of global system definitions."""
        named = self.environment.get("DUCTOR_WORKFLOWS_DIR", "").strip()
        return Path(named) if named else None


def price_list(settings: LocalSettings) -> Prices:
    """The prices that costs of runs are estimated with: a built-in list, or DUCTOR_PRICES. Raises StartError."""
    try:
        return read_prices(settings.environment.get("DUCTOR_PRICES", ""))
    except PricesError as error:
        raise StartError(f"DUCTOR_PRICES: {error}") from error


def action_catalog(settings: LocalSettings | None = None) -> ActionRegistry:
    """Every action of this installation: built in, from entry points, and from DUCTOR_ACTIONS. Raises StartError."""
    chosen = settings or LocalSettings()
    try:
        return installed_actions(chosen.environment, parse_duration)
    except ActionLoadError as error:
        raise StartError(str(error)) from error


class NoFaults:
    """Production has no simulated crashes."""

    def at(self, point: str) -> None:
        """Nothing happens here."""


class Loop(Protocol):
    """Something that runs on a thread of its own until it is told to stop."""

    def run(self, stop: threading.Event) -> None:
        """Return soon after `stop` is set."""
        ...


class LocalApp:
    """The whole engine in one process on one data file. `start` and `stop` once each."""

    def __init__(self, data: Path, settings: LocalSettings) -> None:
        self.data = data
        self.env_file = data / "env"
        self.admin_env_file = data / "admin.env"
        self.first_start = False
        self._settings = settings
        self._stop = threading.Event()
        self._hung_up = threading.Event()
        self._threads: list[threading.Thread] = []
        self._presence = _Presence(data)
        self._database = Database(data / "ductor.db")
        self._wire()

    def _wire(self) -> None:
        database, clock, ids = self._database, SystemClock(), SystemIds()
        table, blobs, unit = SqliteTable(database), SqliteBlobs(database), SqliteUnit(database)
        intents = SqliteFifoQueue(database, QueueName.INTENTS, clock)
        steps = SqliteQueue(database, QueueName.STEPS, clock)
        timers = SqliteTimers(database)
        payloads, attempts, library = PayloadStore(table, blobs), Attempts(table), Library(table)
        registry, faults = action_catalog(self._settings), NoFaults()
        self.tenants, self.keys = Tenants(table, clock, ids), Keys(table, clock, ids)
        self.definitions = Definitions(table, clock, ids, registry, self.tenants)
        self.admin = Administration(
            table=table,
            secrets=FileSecrets(self.data),
            clock=clock,
            ids=ids,
            connectors=registry.connectors,
            definitions=self.definitions,
            tenants=self.tenants,
        )
        self.triggers = Triggers(
            table=table,
            payloads=payloads,
            intents=intents,
            unit=unit,
            clock=clock,
            ids=ids,
            library=library,
            gate=Gate(table),
        )
        self.scheduling = Scheduling(table=table, triggers=self.triggers, library=library, clock=clock, ids=ids)
        self.controls, self.signals = (
            Controls(table=table, intents=intents, clock=clock, ids=ids),
            Signals(table=table, payloads=payloads, intents=intents, unit=unit, clock=clock, ids=ids),
        )
        self.decisions = Decisions(
            table=table, payloads=payloads, library=library, intents=intents, unit=unit, clock=clock, ids=ids
        )
        self.operations = Operations(
            table=table, payloads=payloads, library=library, intents=intents, unit=unit, clock=clock, ids=ids
        )
        self.runs, self.trees, self.costs, self.bridge = (
            Runs(table=table, payloads=payloads, library=library, tenants=self.tenants),
            RunTrees(table),
            RunCosts(table, price_list(self._settings)),
            Bridge(
                BridgeDoors(
                    table=table, payloads=payloads, intents=intents, unit=unit, clock=clock, ids=ids, faults=faults
                ),
                pause=self._rest,
                look_ms=BRIDGE_LOOK_MS,
            ),
        )
        waiters, event_rows = Waiters(table, payloads), EventRows(table, clock)
        self.events = Events(
            waiters=waiters,
            rows=event_rows,
            intents=intents,
            unit=unit,
            clock=clock,
            ids=ids,
            faults=faults,
            starts=EventTriggers(table=table, library=library, triggers=self.triggers, gate=Gate(table)),
        )
        lines = lineage(
            table=table,
            payloads=payloads,
            intents=intents,
            clock=clock,
            ids=ids,
            library=library,
            gate=Gate(table),
        )
        self.continuations = Continuations(
            table=table, payloads=payloads, intents=intents, unit=unit, clock=clock, ids=ids
        )
        dispatcher = Dispatcher(
            intents=intents,
            steps=steps,
            timers=timers,
            attempts=attempts,
            resends=Resends(steps, clock),
            clock=clock,
            ids=ids,
            handlers={
                **WaitCommands(waiters, event_rows, clock).handlers(),
                **lines.handlers,
                Announce: Lifecycle(Loopback(self.events)).announce,
            },
            doors={**lines.doors, StepType.BRIDGE: BridgeDoor(BridgeQueue(table), attempts, clock)},
        )
        committer = Committer(
            table=table,
            payloads=payloads,
            definitions=lambda tenant, definition_id: library.load(tenant, definition_id)[1],
            behaviours=BEHAVIOURS,
            clock=clock,
            faults=faults,
        )
        stalls = Stalls(table=table, committer=committer, dispatcher=dispatcher, clock=clock, ids=ids, faults=faults)
        coordinator = Coordinator(
            table=table,
            committer=committer,
            dispatcher=dispatcher,
            stalls=stalls,
            unit=unit,
            faults=faults,
            cached_runs=CACHED_RUNS,
            batches=self.operations.batches.deliver,
        )
        ai = AiSteps(
            providers=installed_models(self._settings.environment, registry.connectors),
            registry=registry.provide(
                OwnActions(table=table, library=library, triggers=self.triggers, events=self.events).actions()
            ),
            connections=self.admin.connecting,
            journal=Journal(table, payloads),
            clock=clock,
        )
        doors = WorkerDoors(
            attempts=attempts,
            payloads=payloads,
            registry=registry,
            intents=intents,
            steps=steps,
            clock=clock,
            ids=ids,
            unit=unit,
            faults=faults,
            connections=self.admin.connecting,
            step_actions=ai.actions(),
        )
        if self._presence.alone:
            intents.release()
            steps.release()
        sole_since = clock.now_ms() if self._presence.alone else 0
        name = f"local-{os.getpid()}-{ids.token(4)}"
        worker = Worker(doors, WorkerSettings(name=name, lease_ms=LEASE_MS, sole_since=sole_since))
        threads = self._settings.workers or DEFAULT_WORKERS
        self._loops: dict[str, Loop] = {
            "engine": EngineLoop(
                coordinator=coordinator,
                worker=worker,
                pool=ActionPool(worker, unit, threads=threads),
                intents=intents,
                steps=steps,
                unit=unit,
                bell=MessageBell(database, (intents, steps)),
                lease_ms=LEASE_MS,
            ),
            "schedules": self.scheduling.loop,
            "timers": TimerLoop(timers, intents, unit, clock, ids),
            "sweeper": SweeperLoop(
                Sweeper(
                    table=table,
                    intents=intents,
                    clock=clock,
                    ids=ids,
                    also=(
                        *housekeeping(table=table, payloads=payloads, intents=intents, clock=clock, ids=ids),
                        lambda: table.purge(clock.now_ms(), limit=MAX_PURGED),
                        self.operations.batches.sweep,
                        *self.scheduling.chores,
                    ),
                )
            ),
        }
        self._clock, self._ids, self._table, self._registry = clock, ids, table, registry

    @property
    def asgi(self) -> Any:
        """The HTTP API as an ASGI application."""
        from ductor.api.app import build_api
        from ductor.api.auth import KeyIdentity
        from ductor.api.deps import ApiDeps
        from ductor.api.local_server import LocalGateway
        from ductor.api.routes.bridge import waits

        deps = ApiDeps(
            identity=KeyIdentity(self.keys),
            keys=self.keys,
            definitions=self.definitions,
            triggers=self.triggers,
            controls=self.controls,
            decisions=self.decisions,
            events=self.events,
            bridge=self.bridge,
            signals=self.signals,
            runs=self.runs,
            operations=self.operations,
            schedules=self.scheduling.schedules,
            continuations=self.continuations,
            trees=self.trees,
            costs=self.costs,
            admin=self.admin,
            clock=self._clock,
            ids=self._ids,
        )
        return LocalGateway(build_api(deps), waits=waits)

    def start(self) -> None:
        """Make the first tenant and its keys when the file is new, then run the loops. Raises StartError."""
        try:
            self._first_start()
            if self._settings.workflow_folder is not None:
                self._load_system_definitions(self._settings.workflow_folder)
        except UnavailableError as error:
            raise StartError(str(error)) from error
        for name, loop in self._loops.items():
            thread = threading.Thread(target=loop.run, args=(self._stop,), name=name, daemon=True)
            thread.start()
            self._threads.append(thread)

    def _first_start(self) -> None:
        written = self.env_file.exists() and self.admin_env_file.exists()
        first = self.tenants.first_start(self.keys, reissue=not written)
        if first.key is not None and first.admin_key is not None:
            self.first_start = True
            _write_env(self.admin_env_file, first.tenant, first.admin_key.plaintext, self._settings.url)
            _write_env(self.env_file, first.tenant, first.key.plaintext, self._settings.url)
        for path in (self.env_file, self.admin_env_file):
            _correct_address(path, self._settings.url)

    def _load_system_definitions(self, folder: Path) -> None:
        from ductor.app.system_definitions import SystemDefinitions
        from ductor.validation.source import CASE_SUFFIXES, read_source

        if not folder.is_dir():
            raise StartError(f"DUCTOR_WORKFLOWS_DIR is no folder: {folder}")
        store = SystemDefinitions(self._table)
        files = [below for below in folder.rglob("*") if below.suffix in (".yaml", ".yml")]
        for path in sorted(below for below in files if not below.name.endswith(CASE_SUFFIXES)):
            document, faults = read_source(path.read_text(encoding="utf-8"))
            if isinstance(document, dict) and not faults:
                faults = list(store.load(document, self._registry, self._clock, self._ids))
            if faults or not isinstance(document, dict):
                told = "; ".join(f"{fault.field}: {fault.message} ({fault.code})" for fault in faults[:5])
                raise StartError(f"{path} is no system definition: {told or 'it holds no object'}")

    def hang_up(self) -> None:
        """Workers that wait for a task are answered now: the server is about to stop."""
        self._hung_up.set()

    def _rest(self, ms: int) -> bool:
        return not self._hung_up.wait(ms / 1000)

    def stop(self) -> None:
        """Stop the loops; running actions get a few seconds, unfinished ones run again at the next start."""
        self._stop.set()
        for thread in self._threads:
            thread.join(STOP_SECONDS)
        self._database.close()
        self._presence.close()


class _Presence:
    """A lock file that tells whether another server uses the same data folder right now."""

    def __init__(self, data: Path) -> None:
        self._file = (data / "lock").open("a")
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self.alone = True
        except BlockingIOError:
            self.alone = False
        fcntl.flock(self._file, fcntl.LOCK_SH)

    def close(self) -> None:
        self._file.close()


def _correct_address(path: Path, url: str) -> None:
    """The address in an env file follows the server when it starts on another port."""
    lines = path.read_text().splitlines()
    wanted = f"export DUCTOR_API_URL={shlex.quote(url)}"
    changed = [wanted if line.startswith("export DUCTOR_API_URL=") else line for line in lines]
    if changed != lines:
        _replace_private(path, "".join(f"{line}\n" for line in changed))


def _write_env(path: Path, tenant: str, key: str, url: str) -> None:
    """The lines to `source` before using the API; readable by the owner alone."""
    values = {"DUCTOR_API_KEY": key, "DUCTOR_TENANT_ID": tenant, "DUCTOR_TENANT": tenant, "DUCTOR_API_URL": url}
    _replace_private(path, "".join(f"export {name}={shlex.quote(value)}\n" for name, value in values.items()))


def _replace_private(path: Path, text: str) -> None:
    """Write a file whole or not at all, readable by its owner alone."""
    draft = path.with_suffix(".new")
    descriptor = os.open(draft, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)


def system_definitions(data: Path) -> list[DefinitionRow]:
    """The newest version of each system definition in a data folder. Raises StartError when there is no data file."""
    from ductor.app.system_definitions import SystemDefinitions

    with _data_file(data) as database:
        try:
            return SystemDefinitions(SqliteTable(database)).newest()
        except UnavailableError as error:
            raise StartError(str(error)) from error


@contextmanager
def dead_letters(data: Path, name: QueueName) -> Iterator[DeadLetters]:
    """The dead letters of a queue in a data folder. Raises StartError when there is no data file, UnavailableError."""
    kind = SqliteFifoQueue if name is QueueName.INTENTS else SqliteQueue
    with _data_file(data) as database:
        yield kind(database, name, SystemClock())


@contextmanager
def _data_file(data: Path) -> Iterator[Database]:
    """The data file of a folder, beside a server that may have it open too. Raises StartError when there is none."""
    path = data / "ductor.db"
    if not path.is_file():
        raise StartError(f"there is no data file {path}")
    database = Database(path)
    try:
        yield database
    finally:
        database.close()


def local_app(data: Path, settings: LocalSettings | None = None) -> LocalApp:
    """Build the local application on `data` (made when missing). Raises StartError, OSError."""
    data.mkdir(parents=True, exist_ok=True, mode=0o700)
    try:
        return LocalApp(data, settings or LocalSettings())
    except UnavailableError as error:
        raise StartError(str(error)) from error
