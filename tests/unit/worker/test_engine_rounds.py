"""A round of the local process: results, the intents they cause and the ticks become durable together."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.benchmarks.definitions import chain
from tests.benchmarks.local import publish

from ductor.app.access import Caller
from ductor.app.admission import TriggerRequest
from ductor.app.claims import Finished
from ductor.app.coordinator import Coordinator
from ductor.app.engine_loop import EngineLoop
from ductor.bootstrap.local_app import LocalApp, local_app
from ductor.model.enums import RunStatus
from ductor.ports import UnavailableError


class Room:
    """A local application whose rounds a test drives, with one run of a chain of no-op actions."""

    def __init__(self, data: Path, length: int) -> None:
        self.app: LocalApp = local_app(data)
        self.app._first_start()
        key = next(line for line in self.app.env_file.read_text().splitlines() if "DUCTOR_API_KEY" in line)
        self.caller: Caller = self.app.keys.authenticate(f"Bearer {key.partition('=')[2]}")
        engine = self.app._loops["engine"]
        assert isinstance(engine, EngineLoop)
        self.engine = engine
        definition = publish(self.app, self.caller, chain(length))
        self.run_id = self.app.deps.triggers.trigger(self.caller, definition, TriggerRequest()).run_id

    def until_idle(self, results: list[Finished]) -> None:
        for _ in range(20):
            results = self.engine.round(results)
            if not results and not self.waiting:
                return
        raise AssertionError("work without an end")

    @property
    def waiting(self) -> int:
        """Intents in the queue."""
        return self.app._intents.depth()

    @property
    def status(self) -> RunStatus:
        return RunStatus(self.app.deps.runs.summary(self.caller, self.run_id).status)

    def control(self, operation: str) -> None:
        self.app.deps.controls.send(self.caller, self.run_id, operation, operation)


@pytest.fixture
def room(tmp_path: Path) -> Iterator[Room]:
    room = Room(tmp_path, 2)
    yield room
    room.app.stop()


def fail_once(monkeypatch: pytest.MonkeyPatch, fault: Exception) -> None:
    """The next tick of any run raises `fault`."""
    tick, faults = Coordinator._tick, [fault]

    def failing(self: Coordinator, *args: Any, **options: Any) -> Any:
        if faults:
            raise faults.pop()
        return tick(self, *args, **options)

    monkeypatch.setattr(Coordinator, "_tick", failing)


def test_a_result_is_applied_in_the_round_that_records_it(room: Room) -> None:
    first = room.engine.round([])
    second = room.engine.round(first)
    assert (len(first), len(second), room.waiting) == (1, 1, 0)
    assert room.engine.round(second) == []
    assert (room.status, room.waiting) == (RunStatus.COMPLETED, 0)


def test_a_result_is_applied_behind_the_messages_of_its_round(room: Room) -> None:
    results = room.engine.round([])
    room.control("pause")
    assert room.engine.round(results) == []  # had the result been first, the second step had begun
    assert (room.status, room.waiting) == (RunStatus.PAUSED, 0)


def test_a_result_goes_behind_a_message_that_somebody_else_holds(room: Room) -> None:
    results = room.engine.round([])
    room.control("pause")
    (elsewhere,) = room.app._intents.receive(10, visibility_ms=60_000)
    assert (room.engine.round(results), room.waiting) == ([], 2)
    room.app._intents.retry([elsewhere.receipt], delay_ms=0)
    assert room.engine.round([]) == []
    assert (room.status, room.waiting) == (RunStatus.PAUSED, 0)
    room.control("resume")
    room.until_idle([])
    assert room.status is RunStatus.COMPLETED


def test_a_result_that_cannot_be_applied_now_is_told_by_the_queue(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    results = room.engine.round([])
    fail_once(monkeypatch, UnavailableError("away"))
    assert (room.engine.round(results), room.waiting) == ([], 1)
    room.until_idle([])
    assert room.status is RunStatus.COMPLETED


def test_a_round_that_failed_has_told_nobody_and_can_be_repeated(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    results = room.engine.round([])
    fail_once(monkeypatch, ValueError("a bug"))
    with pytest.raises(ValueError, match="a bug"):
        room.engine.round(results)
    assert (room.waiting, room.status) == (0, RunStatus.RUNNING)
    room.until_idle(results)
    assert room.status is RunStatus.COMPLETED
