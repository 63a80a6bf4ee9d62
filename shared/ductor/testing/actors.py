"""The processes of a simulated installation, driven one step at a time: coordinators, workers, timers, the sweeper.

Each is built anew after a crash: nothing that it held in memory survives, what it held in flight comes back by itself.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from ductor.app.claims import Claimed, Finished
from ductor.app.coordinator import Coordinator
from ductor.app.settling import settle
from ductor.app.worker import Worker
from ductor.model.errors import StepError
from ductor.ports import Clock, Message, Queue, UnavailableError
from ductor.testing.doubles import Doubles
from ductor.testing.ledger import Claim, Ledger

VISIBILITY_MS: Final = 5_000
LEASE_MS: Final = 10_000


class CoordinatorActor:
    """One coordinator and what a queue trigger does around it."""

    def __init__(self, name: str, intents: Queue, build: Callable[[], Coordinator]) -> None:
        self.name = name
        self._intents = intents
        self._build = build
        self.coordinator = build()

    def restart(self) -> None:
        self.coordinator = self._build()

    def deliver(self, limit: int, rng: random.Random | None = None) -> int:
        """Receive, handle and settle one batch; how many messages there were."""
        messages = self._intents.receive(limit, visibility_ms=VISIBILITY_MS)
        if messages:
            settle(self._intents, self.coordinator.handle(_mixed(messages, rng)))
        return len(messages)


def _mixed(messages: Sequence[Message], rng: random.Random | None) -> Sequence[Message]:
    """The messages with their groups in another order; within a group the order stays."""
    if rng is None or len(messages) < 2:
        return messages
    places = [message.group for message in messages]
    rng.shuffle(places)
    queues: dict[str, list[Message]] = {}
    for message in messages:
        queues.setdefault(message.group, []).append(message)
    return [queues[group].pop(0) for group in places]


class Running(msgspec.Struct):
    """An attempt that a worker holds; `result` is there from the moment its action has begun, for later."""

    claimed: Claimed
    result: Finished | None = None
    ready_at: int = 0


class WorkerActor:
    """One worker with the attempts that it runs at the same time."""

    def __init__(
        self,
        name: str,
        steps: Queue,
        clock: Clock,
        doubles: Doubles,
        ledger: Ledger,
        build: Callable[[str], Worker],
    ) -> None:
        self.name = name
        self._steps = steps
        self._clock = clock
        self._doubles = doubles
        self._ledger = ledger
        self._build = build
        self._lives = 0
        self.running: list[Running] = []
        self.worker = build(f"{name}.0")

    def restart(self) -> None:
        self._lives += 1
        self.running = []
        self.worker = self._build(f"{self.name}.{self._lives}")

    def claim(self, limit: int) -> int:
        """Receive and claim tasks; how many messages there were."""
        messages = self._steps.receive(limit, visibility_ms=LEASE_MS)
        if messages:
            for claimed in self.worker.claim(messages):
                attempt = claimed.row.attempt
                task = attempt.task
                number, stopped = self._ledger.tick(), attempt.cancel_requested
                self._ledger.claims.append(
                    Claim(task.run_id, task.node, task.attempt, attempt.deliveries, number, stopped)
                )
                self.running.append(Running(claimed))
        return len(messages)

    def begin(self, running: Running) -> None:
        """Run the action. Its effect happens now; its result is there when the action has taken its time."""
        running.result = self.worker.execute(running.claimed)
        running.ready_at = self._clock.now_ms() + self._doubles.takes_ms
        self._doubles.takes_ms = 0

    @property
    def waiting(self) -> list[Running]:
        """Claimed and not begun."""
        return [one for one in self.running if one.result is None]

    @property
    def ready(self) -> list[Running]:
        """Begun, and the time that they take has passed."""
        now = self._clock.now_ms()
        return [one for one in self.running if one.result is not None and one.ready_at <= now]

    @property
    def next_ready_in(self) -> int | None:
        """Milliseconds until the next result."""
        moments = [one.ready_at for one in self.running if one.result is not None]
        return max(0, min(moments) - self._clock.now_ms()) if moments else None

    def finish(self, done: Sequence[Running]) -> None:
        """Record results. What could not be recorded stays for another try."""
        results = [one.result for one in done if one.result is not None]
        self.worker.finish(results)
        self.running = [one for one in self.running if one not in done]

    def look(self, *, heed: bool) -> None:
        """Renew the leases of what still runs and end what ran too long; with `heed`, stop what is to stop."""
        held = [one.claimed for one in self.running]
        self.worker.renew([claimed for claimed in held if self.worker.wants_renewal(claimed)])
        self.worker.expire(held)
        for one in self.running:
            if heed and one.result is not None and one.claimed.stop.is_set():
                one.result = Finished(one.claimed, error=StepError("CANCELLED", "asked to stop", retryable=False))
                one.ready_at = 0

    def beat(self, running: Running) -> None:
        """The action reports progress."""
        self.worker.beat(running.claimed, {"beat": self._clock.now_ms()})

    def leave(self) -> None:
        """An orderly stop: what has not ended is given back."""
        held = [one.claimed for one in self.running]
        self.restart_after(lambda: self.worker.give_back(held))

    def restart_after(self, last: Callable[[], None]) -> None:
        try:
            last()
        except UnavailableError:
            pass
        self.restart()
