"""Throughput of the local backend: whole runs through the durable file, fsync on, in this process."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from tests.benchmarks.definitions import Document

from ductor.app.access import Caller
from ductor.app.admission import TriggerRequest
from ductor.bootstrap.local_app import LocalApp, local_app
from ductor.bootstrap.local_settings import LocalSettings
from ductor.cli.memory import begin_collection
from ductor.model.enums import RunStatus

DEADLINE_S = 300.0
CLIENTS = 16
"""Threads that trigger at the same time, as the HTTP server has."""


@contextmanager
def running() -> Iterator[tuple[LocalApp, Caller]]:
    """A started application on an empty data file, and its first key's caller."""
    with tempfile.TemporaryDirectory(prefix="ductor-bench-") as folder:
        app = local_app(Path(folder), LocalSettings())
        app.start()
        begin_collection()  # as a server does when it is ready
        try:
            key = next(line for line in app.env_file.read_text().splitlines() if "DUCTOR_API_KEY" in line)
            yield app, app.keys.authenticate(f"Bearer {key.partition('=')[2]}")
        finally:
            app.stop()


def publish(app: LocalApp, caller: Caller, document: Document) -> str:
    """The id of a published version of `document`."""
    draft = app.deps.definitions.create(caller, document).definition
    return app.deps.definitions.publish(caller, draft.id).published.id


def steps_per_second(document: Document, runs: int) -> float:
    """Action steps a second from the first trigger to the last run's end."""
    with running() as (app, caller):
        definition = publish(app, caller, document)
        _complete(app, caller, definition, 3)
        seconds = _complete(app, caller, definition, runs)
    return runs * len(document["steps"]) / seconds


def _complete(app: LocalApp, caller: Caller, definition: str, runs: int) -> float:
    """Seconds that `runs` runs, triggered together, take until the last one has ended."""
    began = time.perf_counter()
    with ThreadPoolExecutor(CLIENTS) as clients:
        triggered = clients.map(lambda _: app.deps.triggers.trigger(caller, definition, TriggerRequest()), range(runs))
        ids = [each.run_id for each in triggered]
    while ids:
        if time.perf_counter() - began > DEADLINE_S:
            raise TimeoutError(f"{len(ids)} of {runs} runs did not end in {DEADLINE_S} s")
        status = RunStatus(app.deps.runs.summary(caller, ids[-1]).status)
        if status is RunStatus.COMPLETED:
            ids.pop()
        elif status.terminal:
            raise RuntimeError(f"run {ids[-1]} ended as {status}")
        else:
            time.sleep(0.01)
    return time.perf_counter() - began
