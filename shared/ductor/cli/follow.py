"""Follows a run until it ends: redrawn in a terminal, one line per change elsewhere. It only reads."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from rich.console import Console
from rich.live import Live

from ductor.cli.client import Client, Unreachable
from ductor.cli.failure import Exit, Failure
from ductor.cli.screen import ended, plain, remark, run_view

FIRST_POLL_SECONDS: Final = 0.1
LAST_POLL_SECONDS: Final = 1.0
GROWTH: Final = 1.15
PATIENCE_SECONDS: Final = 60.0
"""How long a server may be away, for example while it restarts."""

Document = dict[str, Any]
Draw = Callable[[Document], None]


def follow(
    client: Client, run_id: str, title: str, console: Console, sleep: Callable[[float], None] = time.sleep
) -> Document:
    """The snapshot of the ended run. Raises Refused, and Unreachable when the server stays away."""
    snapshot: Document = {}
    try:
        with _drawing(title, console) as draw:
            for snapshot in _snapshots(client, run_id, sleep):
                draw(snapshot)
                if ended(str(snapshot.get("status"))):
                    break
    except KeyboardInterrupt:
        console.print(f"Stopped watching; the run goes on. Watch it again: ductor runs watch {run_id}")
        raise
    return snapshot


def require_completed(snapshot: Document) -> None:
    """Raise Failure unless the run completed."""
    status = str(snapshot.get("status"))
    if status == "completed":
        return
    run_id = snapshot.get("run_id")
    raise Failure(f"run {run_id} ended as {status}", code=Exit.FAILED, hint=f"see why: ductor runs show {run_id}")


def _snapshots(client: Client, run_id: str, sleep: Callable[[float], None]) -> Iterator[Document]:
    pause, away = FIRST_POLL_SECONDS, 0.0
    while True:
        try:
            snapshot, away = client.snapshot(run_id), 0.0
        except Unreachable:
            away += pause
            if away > PATIENCE_SECONDS:
                raise
        else:
            yield snapshot
        sleep(pause)
        pause = min(LAST_POLL_SECONDS, pause * GROWTH)


@contextmanager
def _drawing(title: str, console: Console) -> Iterator[Draw]:
    if not console.is_terminal:
        yield _Lines(title, console)
        return
    with Live(console=console, auto_refresh=False, vertical_overflow="crop") as live:
        yield lambda snapshot: live.update(run_view(title, snapshot, console), refresh=True)


class _Lines:
    """One line for each change of the run or of a node."""

    def __init__(self, title: str, console: Console) -> None:
        self._title, self._console = title, console
        self._seen: dict[str, tuple[Any, Any]] = {}

    def __call__(self, snapshot: Document) -> None:
        for ref, node in (snapshot.get("nodes") or {}).items():
            if node.get("status") != "pending":
                self._line(ref, node, remark(node))
        self._line(self._title, snapshot, "")

    def _line(self, name: str, state: Document, note: str) -> None:
        now = (state.get("status"), state.get("attempt"))
        if self._seen.get(name) == now:
            return
        self._seen[name] = now
        attempt = f" (attempt {now[1]})" if (now[1] or 0) > 1 else ""
        self._console.print(plain(f"{name}: {now[0]}{attempt}" + (f"  {note}" if note else "")), soft_wrap=True)
