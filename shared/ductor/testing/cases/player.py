"""Moves a test's world: work at one moment, the clock, the death of the whole process. Knows no test file."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar

from ductor.app.attempts import MAX_DELIVERIES
from ductor.model.attempt import AttemptStatus
from ductor.model.run import RunState
from ductor.testing.cases.document import Faults
from ductor.testing.cases.net import Net
from ductor.testing.cases.stage import Stage
from ductor.testing.cases.timetable import Timetable
from ductor.testing.chaos import Chances, Crash
from ductor.testing.invariants import nodes_of
from ductor.testing.rounds import Act, Rounds

MAX_ROUNDS: Final = 50_000
"""After so many rounds of work at one moment a world counts as never coming to rest."""

MAX_JUMPS: Final = 50_000
MAX_CRASHES: Final = 60
"""Deaths of the process in one case; after them it lives on, so that every case ends."""

MAX_TRIES: Final = 100

Answer = TypeVar("Answer")

_CRASHES: Final = Chances(crash=0.1, crash_call=0.03)
_DUPLICATES: Final = Chances(duplicate=0.4, lost_ack=0.2, repeated_timer=0.3)
_DELAYS: Final = Chances(delayed=0.4)


class RestlessError(Exception):
    """The world goes on working without time passing, or time passes without anything coming of it."""


def chances_of(faults: Faults) -> Chances:
    """How likely each kind of fault is."""
    crash, twice, late = faults.crash == "random", faults.duplicates, faults.delays
    return Chances(
        crash=_CRASHES.crash * crash,
        crash_call=_CRASHES.crash_call * crash,
        duplicate=_DUPLICATES.duplicate * twice,
        lost_ack=_DUPLICATES.lost_ack * twice,
        repeated_timer=_DUPLICATES.repeated_timer * twice,
        delayed=_DELAYS.delayed * late,
    )


class Player:
    """Drives one world. Dying costs no virtual time: what was in flight is taken up at once, as after a restart.

    `tries` is how often the last request had to be sent, `crashes` how often the process died.
    """

    def __init__(self, stage: Stage, faults: Faults | None) -> None:
        self._stage = stage
        self._late = faults is not None and faults.delays
        self.crashes = 0
        self.tries = 0
        self._died = False
        self._rounds = Rounds(stage, self._guarded)
        self.timetable = Timetable(stage)
        self.net = Net(stage)
        stage.chaos.chances = chances_of(faults) if faults is not None else Chances()
        stage.chaos.spared = self._spared

    def ask(self, act: Callable[[], Answer]) -> Answer:
        """Call a use case as a client that tries again when the server dies before it has answered."""
        for self.tries in range(1, MAX_TRIES + 1):
            try:
                return act()
            except Crash:
                self._restart()
        raise RestlessError("the server died at every try of one request")

    def settle(self) -> None:
        """Work until nothing can be done at this moment. With `delays`, time passes until late messages are there."""
        stage = self._stage
        for _ in range(MAX_ROUNDS):
            if self._died:
                self._died = False
                self._guarded(self.net.take_up)
                continue
            if self._rounds.round() or self._guarded(stage.outside.work) or self._guarded(self.timetable.fire):
                continue
            self._redeliver()
            at = stage.steps.next_visible_at() if self._late else None
            if at is None or not self._tasks_are_late():
                if stage.intents.next_visible_at() == stage.clock.now:
                    continue
                return
            stage.clock.set(max(at, stage.clock.now + 1))
        raise RestlessError(f"still at work after {MAX_ROUNDS} rounds at one moment")

    def advance_to(self, until: int) -> None:
        """Let time pass, with everything that falls due on the way."""
        clock = self._stage.clock
        self.settle()
        for _ in range(MAX_JUMPS):
            at = self._next_moment()
            if at is None or at > until or clock.now >= until:
                clock.set(max(until, clock.now))
                self.settle()
                return
            clock.set(max(at, clock.now + 1))
            self.settle()
        raise RestlessError(f"more than {MAX_JUMPS} moments at which something was due")

    def skip_until(self, reached: Callable[[], bool]) -> bool:
        """Let time pass until `reached`; False when nothing is left to happen by itself before that."""
        clock = self._stage.clock
        for _ in range(MAX_JUMPS):
            self.settle()
            if reached():
                return True
            at = self._next_moment()
            if at is None or not self._has_future():
                return False
            clock.set(max(at, clock.now + 1))
        raise RestlessError(f"more than {MAX_JUMPS} moments at which something was due")

    def _next_moment(self) -> int | None:
        moments = (self._rounds.next_moment(), self._stage.outside.next_at, self.timetable.next_at())
        return min((at for at in moments if at is not None), default=None)

    def _redeliver(self) -> None:
        """What nobody holds any more comes back at once: an acknowledgement that was lost costs no time."""
        if self._stage.chaos.chances.lost_ack:
            self._stage.intents.release()

    def _tasks_are_late(self) -> bool:
        """Whether an attempt waits for its message to a worker."""
        held = {
            (one.claimed.task.run_id, one.claimed.task.node) for worker in self._stage.workers for one in worker.running
        }
        return self._stage.steps.depth() > len(held)

    def _has_future(self) -> bool:
        """Whether anything goes on without somebody from outside: work, or a deadline."""
        stage = self._stage
        if (
            stage.outside.held
            or any(worker.running for worker in stage.workers)
            or stage.steps.depth()
            or stage.intents.depth()
        ):
            return True
        return any(self._is_due(stage.state(run_id)) for run_id in stage.run_ids())

    def _is_due(self, state: RunState) -> bool:
        now = self._stage.clock.now
        if state.status.terminal:
            return False
        return state.deadline > now or any(
            entry.deadline > now and not entry.status.ended for _, entry in nodes_of(state)
        )

    # Faults

    def _guarded(self, act: Act) -> int:
        try:
            return act()
        except Crash:
            self._restart()
            return 1

    def _restart(self) -> None:
        """The process is gone with all that it remembered, and a new one starts on the same storage."""
        stage = self._stage
        self.crashes += 1
        self._died = True
        stage.sole_since = stage.clock.now + 1
        for coordinator in stage.coordinators:
            coordinator.restart()
        for worker in stage.workers:
            worker.restart()
        stage.intents.release()
        stage.steps.release()

    def _spared(self) -> bool:
        """Nothing strikes while an attempt has its last delivery: one more loss would rightly fail it."""
        if self.crashes >= MAX_CRASHES:
            return True
        rows = (row for run_id in self._stage.run_ids() for row in self._stage.attempts(run_id))
        return any(row.status is AttemptStatus.RUNNING and row.deliveries >= MAX_DELIVERIES for row in rows)
