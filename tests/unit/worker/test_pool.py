"""Threads around a worker, on the real data file: what they must never do to each other."""

from __future__ import annotations

import functools
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.unit.worker.desk import CrashOnce, does

from ductor.actions.action import Action
from ductor.actions.context import ActionContext
from ductor.actions.registry import ActionRegistry
from ductor.adapters.local.blobs import SqliteBlobs
from ductor.adapters.local.database import Database
from ductor.adapters.local.fifo import SqliteFifoQueue
from ductor.adapters.local.queue import SqliteQueue
from ductor.adapters.local.system import SystemIds
from ductor.adapters.local.table import SqliteTable
from ductor.adapters.local.unit import SqliteUnit
from ductor.app import action_pool
from ductor.app.action_pool import ActionPool
from ductor.app.attempts import Attempts
from ductor.app.claims import Claimed
from ductor.app.payloads import PayloadStore
from ductor.app.worker import Worker, WorkerDoors, WorkerSettings
from ductor.model.attempt import Attempt, AttemptStatus, AttemptTask
from ductor.model.payload import Inline
from ductor.ports import Outgoing, QueueName
from ductor.testing.memory import VirtualClock

DEADLINE_S = 10.0


class Shop:
    """A worker with a pool over one data file, on virtual time."""

    def __init__(self, path: Path, action: Action, threads: int) -> None:
        self.clock = VirtualClock()
        self.database = database = Database(path / "shop.db")
        self.steps = SqliteQueue(database, QueueName.STEPS, self.clock)
        self.unit = SqliteUnit(database)
        self.attempts = Attempts(SqliteTable(database))
        doors = WorkerDoors(
            attempts=self.attempts,
            payloads=PayloadStore(SqliteTable(database), SqliteBlobs(database)),
            registry=ActionRegistry([action]),
            intents=SqliteFifoQueue(database, QueueName.INTENTS, self.clock),
            steps=self.steps,
            clock=self.clock,
            ids=SystemIds(),
            unit=self.unit,
            faults=CrashOnce(),
        )
        self.worker = Worker(doors, WorkerSettings(name="w", lease_ms=10_000))
        self.pool = ActionPool(self.worker, self.unit, threads=threads)
        self.pool.start()

    def claim(self, node: str, **task: Any) -> Claimed:
        """Send a task and claim it."""
        made = AttemptTask("run-1", "t", node, 1, 1, "do", Inline({}), **task)
        with self.unit.batch():
            self.steps.send([Outgoing(msgspec.json.encode(made))])
            (claimed,) = self.worker.claim(self.steps.receive(10, visibility_ms=10_000))
        return claimed

    def submit(self, node: str, **task: Any) -> None:
        """Send a task, claim it, and give it to the pool."""
        self.pool.submit(self.claim(node, **task))

    def row(self, node: str) -> Attempt:
        row = self.attempts.read("run-1", node, 1)
        assert row is not None
        return row.attempt

    def ends(self, node: str) -> Attempt:
        """The row of an attempt, once it has ended."""
        until(lambda: self.row(node).status.ended)
        return self.row(node)


def until(condition: Callable[[], bool]) -> None:
    """Wait for a condition, not for ever."""
    deadline = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < deadline, "it never happened"
        time.sleep(0.005)


@pytest.fixture
def release() -> Iterator[threading.Event]:
    """Lets the actions that hang end with the test."""
    event = threading.Event()
    yield event
    event.set()


class Hangs:
    """`do` that hangs in some nodes until it is released. `begun` are the nodes that it has been called for."""

    def __init__(self, nodes: set[str], release: threading.Event) -> None:
        self.begun: set[str] = set()
        self._nodes = nodes
        self._release = release

    @property
    def action(self) -> Action:
        return does(self._run)

    def _run(self, args: dict[str, Any], ctx: ActionContext) -> dict[str, Any]:
        self.begun.add(ctx.node)
        if ctx.node in self._nodes:
            self._release.wait(DEADLINE_S)
        return {"node": ctx.node}


@pytest.fixture(autouse=True)
def watchful(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """A pool that looks often and waits little; a number for each look of its watchdog."""
    looks: list[int] = []
    look_after = ActionPool._look_after

    def counted(pool: ActionPool, held: list[Claimed]) -> None:
        look_after(pool, held)
        looks.append(len(held))

    monkeypatch.setattr(action_pool, "WATCH_S", 0.01)
    monkeypatch.setattr(action_pool, "GRACE_S", 0.05)
    monkeypatch.setattr(ActionPool, "_look_after", counted)
    return looks


def test_a_heartbeat_and_the_watchdog_do_not_wait_for_each_other(tmp_path: Path) -> None:
    shop = Shop(tmp_path, does(lambda args, ctx: {}), threads=1)
    claimed = shop.claim("a")
    shop.clock.advance(5_000)
    beats = threading.Thread(target=lambda: shop.worker.beat(claimed, {"page": 1}), daemon=True)
    with shop.unit.batch():
        # The watchdog has its turn to write, the action waits for its own: now each wants the attempt.
        beats.start()
        until(lambda: shop.database.contended)
        shop.worker.renew([claimed])
    beats.join(DEADLINE_S)
    assert not beats.is_alive()
    assert shop.row("a").heartbeat_details == {"page": 1}


def test_an_action_that_hangs_past_its_timeout_does_not_take_a_place(tmp_path: Path, release: threading.Event) -> None:
    hangs = Hangs({"a", "b"}, release)
    shop = Shop(tmp_path, hangs.action, threads=1)
    for node in ("a", "b"):
        shop.submit(node, timeout_ms=1_000)
        until(functools.partial(hangs.begun.__contains__, node))
        assert not shop.pool.has_room
        shop.clock.advance(1_001)
        assert shop.ends(node).status is AttemptStatus.TIMED_OUT
        until(lambda: shop.pool.has_room)
    shop.submit("c")
    assert shop.ends("c").status is AttemptStatus.SUCCEEDED


def test_what_a_hanging_action_returns_at_last_is_kept_beside_the_timeout(
    tmp_path: Path, release: threading.Event
) -> None:
    hangs = Hangs({"a"}, release)
    shop = Shop(tmp_path, hangs.action, threads=1)
    shop.submit("a", timeout_ms=1_000)
    until(lambda: "a" in hangs.begun)
    shop.clock.advance(1_001)
    shop.ends("a")
    release.set()
    until(lambda: shop.row("a").late_output == Inline({"node": "a"}))
    assert shop.row("a").status is AttemptStatus.TIMED_OUT


def test_as_many_run_at_once_as_there_are_threads_also_after_a_hanging_action_ended(
    tmp_path: Path, release: threading.Event
) -> None:
    most: list[int] = []
    now: set[str] = set()

    def run(args: dict[str, Any], ctx: ActionContext) -> dict[str, Any]:
        now.add(ctx.node)
        if ctx.node == "hangs":
            release.wait(DEADLINE_S)
        else:
            ctx.wait(0.02)
        most.append(len(now))
        now.discard(ctx.node)
        return {}

    shop = Shop(tmp_path, does(run), threads=2)
    shop.submit("hangs", timeout_ms=1_000)
    until(lambda: "hangs" in now)
    shop.clock.advance(1_001)
    shop.ends("hangs")
    release.set()
    until(lambda: shop.row("hangs").late_output is not None)
    for number in range(6):
        shop.submit(f"n{number}")
    for number in range(6):
        assert shop.ends(f"n{number}").status is AttemptStatus.SUCCEEDED
    assert max(most) == 2


def test_an_action_that_ends_its_thread_ends_as_failed(tmp_path: Path) -> None:
    def run(args: dict[str, Any], ctx: ActionContext) -> dict[str, Any]:
        if ctx.node == "a":
            raise GeneratorExit
        return {}

    shop = Shop(tmp_path, does(run), threads=1)
    shop.submit("a")
    shop.submit("b")
    assert shop.ends("a").status is AttemptStatus.FAILED
    assert shop.ends("b").status is AttemptStatus.SUCCEEDED


def test_what_a_stopping_pool_gives_back_is_not_renewed(
    tmp_path: Path, release: threading.Event, watchful: list[int]
) -> None:
    hangs = Hangs({"a"}, release)
    shop = Shop(tmp_path, hangs.action, threads=1)
    shop.submit("a", timeout_ms=10**9)
    until(lambda: "a" in hangs.begun)
    shop.pool.stop()
    shop.clock.advance(5_000)
    rounds = len(watchful)
    until(lambda: len(watchful) > rounds + 2)
    assert shop.row("a").lease_until < shop.clock.now
    assert len(shop.steps.receive(10, visibility_ms=1_000)) == 1
