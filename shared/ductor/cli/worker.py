"""`ductor worker`: runs a worker of bridge steps that a module of yours defines."""

from __future__ import annotations

import importlib
import logging
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from ductor.cli.failure import Exit, Failure
from ductor.cli.options import LogLevel

if TYPE_CHECKING:
    from ductor.client import Worker


@dataclass(frozen=True)
class Options:
    """`target` is `module:name`. `concurrency` None leaves it to the module."""

    target: str
    concurrency: int | None
    data: Path
    log_level: LogLevel


def run(options: Options) -> None:
    """Work until SIGINT or SIGTERM. Raises Failure when there is no such worker, or the server refuses it."""
    from ductor.cli.access import find
    from ductor.client import Access, ApiError

    logging.basicConfig(level=options.log_level.value.upper(), format="%(asctime)s %(levelname)s %(message)s")
    # It would log each request, with the task's token in its path.
    logging.getLogger("httpx").setLevel(logging.WARNING)
    worker = load(options.target)
    if worker.access is None:
        found = find(options.data)
        worker.access = Access(found.url, found.key, found.tenant)
    worker.concurrency = options.concurrency or worker.concurrency
    typer.echo(f"working on {', '.join(worker.task_types)} at {worker.access.url}; stop with Ctrl-C")
    try:
        worker.run()
    except ApiError as refused:
        raise Failure(f"the server refuses this worker: {refused}", code=Exit.REFUSED) from refused
    typer.echo("stopped")


def load(target: str) -> Worker:
    """The worker that `module:name` means; modules of the working directory are found, too. Raises Failure."""
    from ductor.cli.modules import add_working_directory
    from ductor.client import Worker

    module_name, _, name = target.partition(":")
    if not module_name or not name:
        raise Failure(f"{target!r} names no worker", code=Exit.USAGE, hint="write it like my_module:worker")
    add_working_directory()
    try:
        found = getattr(importlib.import_module(module_name), name, None)
    except ImportError as error:
        raise Failure(f"cannot import {module_name}: {error}", code=Exit.USAGE) from error
    if not isinstance(found, Worker):
        raise Failure(f"{target} is no ductor.client.Worker", code=Exit.USAGE)
    if not found.task_types:
        raise Failure(f"{target} has no handlers", code=Exit.USAGE, hint='register one with @worker.task("type")')
    return found
