"""`ductor serve`: the whole engine in one process on one durable file. Builds it, listens, and stops it cleanly."""

from __future__ import annotations

import errno
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import typer

from ductor import __version__
from ductor.cli.failure import Failure
from ductor.cli.memory import begin_collection, put_off_collection, return_large_blocks
from ductor.cli.options import LogLevel

if TYPE_CHECKING:
    from ductor.bootstrap.local_app import LocalApp

BACKLOG: Final = 1024
KEEP_ALIVE_SECONDS: Final = 75
DRAIN_SECONDS: Final = 10
"""How long requests in flight may take at a stop."""

_LISTEN_REASONS: Final = {
    errno.EADDRINUSE: "another program listens there",
    errno.EACCES: "this user may not listen there",
    errno.EADDRNOTAVAIL: "this machine has no such address",
}


@dataclass(frozen=True)
class Options:
    """What the command line asks for. `workers` None leaves the number to the application."""

    host: str
    port: int
    data: Path
    workers: int | None
    demo: bool
    log_level: LogLevel


def run(options: Options, *, began: float) -> None:
    """Serve until SIGINT or SIGTERM. `began` is the monotonic second at which the command started.

    Runs in flight at the stop go on at the next start. Raises Failure when the server cannot start.
    """
    return_large_blocks()
    put_off_collection()
    with _listen(options.host, options.port) as listener:
        url = address(options.host, int(listener.getsockname()[1]))
        local = _start(options, url)
        try:
            _serve(local, listener, options.log_level, lambda: _ready(local, options, url, began))
        finally:
            local.stop()
    typer.echo("stopped; unfinished runs go on at the next start")


def address(host: str, port: int) -> str:
    """The URL at which a client on this machine reaches the server."""
    name = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    return f"http://[{name}]:{port}" if ":" in name else f"http://{name}:{port}"


def _listen(host: str, port: int) -> socket.socket:
    """A listening socket, taken before the data file is opened: a second server on the port then changes nothing."""
    try:
        family, _, _, _, place = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listener = socket.create_server(place[:2], family=family, backlog=BACKLOG)
        # asyncio sets this only where a socket names its protocol, and this one does not: without it each answer
        # (headers and body are two writes) waits 40 ms for the client's delayed acknowledgement.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return listener
    except OSError as error:
        reason = _LISTEN_REASONS.get(error.errno or 0, error.strerror or str(error))
        hint = "choose another one with --port" if error.errno == errno.EADDRINUSE else ""
        raise Failure(f"cannot listen on {host} port {port}: {reason}", hint=hint) from error


def _start(options: Options, url: str) -> LocalApp:
    from ductor.bootstrap.local_app import local_app
    from ductor.bootstrap.local_settings import LocalSettings, StartError
    from ductor.cli.modules import add_working_directory

    add_working_directory()
    try:
        local = local_app(options.data, LocalSettings(url=url, workers=options.workers))
        local.start()
    except StartError as error:
        raise Failure(str(error)) from error
    except OSError as error:
        raise Failure(f"cannot use the data folder {options.data}: {error.strerror or error}") from error
    return local


def _serve(local: LocalApp, listener: socket.socket, log_level: LogLevel, on_ready: Callable[[], None]) -> None:
    import uvicorn

    class Server(uvicorn.Server):
        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            on_ready()
            begin_collection()

        async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
            local.hang_up()
            await super().shutdown(sockets)

    config = uvicorn.Config(
        local.asgi,
        http="httptools",
        ws="none",
        lifespan="on",
        log_level=log_level.value,
        access_log=log_level in (LogLevel.DEBUG, LogLevel.INFO),
        server_header=False,
        backlog=BACKLOG,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=DRAIN_SECONDS,
    )
    # uvicorn stops at a signal and then raises it again for these handlers; a clean stop is no failure.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: None)
    try:
        Server(config).run(sockets=[listener])
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)


def _ready(local: LocalApp, options: Options, url: str, began: float) -> None:
    seconds = time.monotonic() - began
    typer.echo(f"Ductor {__version__} is ready at {url} ({seconds:.2f} s)")
    for name, value in _facts(local, options, url):
        typer.echo(f"  {name:<9} {value}")
    if options.demo:
        threading.Thread(target=_demonstrate, args=(options.data, url), name="demo", daemon=True).start()
    else:
        typer.echo(f"  next      source {local.env_file} && ductor demo")
    sys.stdout.flush()


def _facts(local: LocalApp, options: Options, url: str) -> list[tuple[str, str]]:
    from ductor.cli.access import KEY, read_env
    from ductor.cli.console import console_address

    key = (
        f"{read_env(local.env_file).get(KEY, '')} (also in {local.env_file})"
        if local.first_start
        else f"in {local.env_file}"
    )
    return [
        ("console", console_address(url, local.env_file, on_terminal=sys.stdout.isatty())),
        ("API docs", f"{url}/docs"),
        ("data", str(options.data.resolve())),
        ("API key", key),
        ("admin key", f"in {local.admin_env_file}"),
        ("process", str(os.getpid())),
        ("stop", "Ctrl-C; unfinished runs go on at the next start"),
    ]


def _demonstrate(data: Path, url: str) -> None:
    """The hello world beside the server. Its failure is told, and ends nothing."""
    from ductor.cli.access import URL, find
    from ductor.cli.demo import walk_through
    from ductor.cli.screen import console

    try:
        walk_through(find(data, {URL: url}), console())
    except Failure as failure:
        for line in failure.lines():
            typer.echo(line, err=True)
    else:
        typer.echo(f"The server stays up. Try: source {data / 'env'} && ductor runs list")
