"""Ductor in one process on one data file: what its threads run, how it starts, and how it stops."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any, Final, Protocol

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
from ductor.api.auth import KeyIdentity
from ductor.app.action_pool import ActionPool
from ductor.app.coordinator import Coordinator
from ductor.app.engine_loop import EngineLoop
from ductor.app.gate import Gate
from ductor.app.library import Library
from ductor.app.lifecycle import Lifecycle, Untold
from ductor.app.loopback import Loopback
from ductor.app.loops import SweeperLoop, TimerLoop
from ductor.app.payloads import PayloadStore
from ductor.app.worker import Worker, WorkerSettings
from ductor.bootstrap import engine
from ductor.bootstrap.api import api_deps
from ductor.bootstrap.doors import Doors, NoFaults
from ductor.bootstrap.local_folder import Presence, correct_address, data_file, write_env
from ductor.bootstrap.local_settings import LocalSettings, StartError, action_catalog, price_list
from ductor.bootstrap.use_cases import UseCases
from ductor.bootstrap.workers import ai_steps, provide_own_actions, worker_doors
from ductor.ports import QueueName, UnavailableError

DEFAULT_WORKERS: Final = 16
LEASE_MS: Final = 10_000
CACHED_RUNS: Final = 2_000
STOP_SECONDS: Final = 10
MAX_PURGED: Final = 5_000
"""Rows whose time is over that one sweep removes."""
BRIDGE_LOOK_MS: Final = 250
"""A worker that waits for a task learns of one after so long at the latest."""


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
        self._presence = Presence(data)
        self._database = Database(data_file(data))
        self._open()
        self._assemble()

    def _open(self) -> None:
        database, clock = self._database, SystemClock()
        self._table = SqliteTable(database)
        self._intents = SqliteFifoQueue(database, QueueName.INTENTS, clock)
        self._steps = SqliteQueue(database, QueueName.STEPS, clock)
        self._timers = SqliteTimers(database)
        self._doors = Doors(
            table=self._table,
            payloads=PayloadStore(self._table, SqliteBlobs(database)),
            library=Library(self._table),
            gate=Gate(self._table),
            intents=self._intents,
            unit=SqliteUnit(database),
            clock=clock,
            ids=SystemIds(),
            faults=NoFaults(),
        )
        self._use = UseCases(self._doors)

    def _assemble(self) -> None:
        use, registry = self._use, action_catalog(self._settings)
        self.scheduling = use.scheduling()
        self.deps = api_deps(
            use,
            identity=KeyIdentity(use.keys),
            registry=registry,
            secrets=FileSecrets(self.data),
            prices=price_list(self._settings),
            bridge=use.bridge(self._rest, BRIDGE_LOOK_MS),
            scheduling=self.scheduling,
        )
        self.keys, self.tenants, self._registry = use.keys, use.tenants, registry
        provide_own_actions(use, registry)
        if self._presence.alone:
            self._intents.release()
            self._steps.release()
        sweeper = use.sweeper(self.scheduling, self._purge, self._tell)
        self._loops: dict[str, Loop] = {
            "engine": self._engine(self._coordinator(), self._worker()),
            "schedules": self.scheduling.loop,
            "timers": TimerLoop(self._timers, self._intents, self._doors.unit, self._doors.clock, self._doors.ids),
            "sweeper": SweeperLoop(sweeper),
        }

    def _tell(self) -> int:
        return Untold(self._doors.table).tell(Loopback(self._use.events))

    def _coordinator(self) -> Coordinator:
        doors = self._doors
        told = Lifecycle(Loopback(self._use.events))
        dispatcher = engine.dispatcher(doors, steps=self._steps, timers=self._timers, announce=told.announce)
        committer = engine.committer(doors)
        stalls = engine.stalls(doors, committer, dispatcher)
        batches = self._use.batches.deliver
        return engine.coordinator(doors, committer, dispatcher, stalls, batches=batches, cached_runs=CACHED_RUNS)

    def _worker(self) -> Worker:
        connections, ids = self.deps.admin.connecting, self._doors.ids
        doors = worker_doors(
            self._doors,
            steps=self._steps,
            registry=self._registry,
            connections=connections,
            step_actions=ai_steps(self._use, self._registry, connections, self._settings.environment),
        )
        sole_since = self._doors.clock.now_ms() if self._presence.alone else 0
        name = f"local-{os.getpid()}-{ids.token(4)}"
        return Worker(doors, WorkerSettings(name=name, lease_ms=LEASE_MS, sole_since=sole_since))

    def _engine(self, coordinator: Coordinator, worker: Worker) -> EngineLoop:
        unit, threads = self._doors.unit, self._settings.workers or DEFAULT_WORKERS
        return EngineLoop(
            coordinator=coordinator,
            worker=worker,
            pool=ActionPool(worker, unit, threads=threads),
            intents=self._intents,
            steps=self._steps,
            unit=unit,
            bell=MessageBell(self._database, (self._intents, self._steps)),
            lease_ms=LEASE_MS,
        )

    def _purge(self) -> int:
        return self._table.purge(self._doors.clock.now_ms(), limit=MAX_PURGED)

    @property
    def asgi(self) -> Any:
        """The HTTP API as an ASGI application."""
        from ductor.api.app import build_api
        from ductor.api.local_server import LocalGateway
        from ductor.api.routes.bridge import waits

        return LocalGateway(build_api(self.deps), waits=waits)

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
            write_env(self.admin_env_file, first.tenant, first.admin_key.plaintext, self._settings.url)
            write_env(self.env_file, first.tenant, first.key.plaintext, self._settings.url)
        for path in (self.env_file, self.admin_env_file):
            correct_address(path, self._settings.url)

    def _load_system_definitions(self, folder: Path) -> None:
        from ductor.app.system_definitions import SystemDefinitions
        from ductor.validation.source import CASE_SUFFIXES, read_source

        if not folder.is_dir():
            raise StartError(f"DUCTOR_WORKFLOWS_DIR is no folder: {folder}")
        store, doors = SystemDefinitions(self._table), self._doors
        files = [below for below in folder.rglob("*") if below.suffix in (".yaml", ".yml")]
        for path in sorted(below for below in files if not below.name.endswith(CASE_SUFFIXES)):
            document, faults = read_source(path.read_text(encoding="utf-8"))
            if isinstance(document, dict) and not faults:
                faults = list(store.load(document, self._registry, doors.clock, doors.ids))
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


def local_app(data: Path, settings: LocalSettings | None = None) -> LocalApp:
    """Build the local application on `data` (made when missing). Raises StartError, OSError."""
    data.mkdir(parents=True, exist_ok=True, mode=0o700)
    try:
        return LocalApp(data, settings or LocalSettings())
    except UnavailableError as error:
        raise StartError(str(error)) from error
