"""The whole deployment on moto under a meter, its functions driven as Lambda drives them at load: with full batches."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from tests.benchmarks.meter import Meter
from tests.functions.policy import template
from tests.functions.world import AwsWorld

from ductor.lambdas.telemetry import Handler

FUNCTIONS = ("api", "authorizer", "coordinator", "step", "timer", "sweeper", "event", "schedule")
BETWEEN_MS = (10, 60)
"""From one batch to the next."""

OF_QUEUE = {"intents.fifo": "coordinator", "steps": "step", "timers": "timer", "schedule": "schedule"}


class MeteredWorld(AwsWorld):
    """A stack whose functions are metered. Made by `metered_world`."""

    def __init__(self, meter: Meter) -> None:
        self.meter = meter
        self._pace = random.Random(1)
        super().__init__()
        resources = template()["Resources"]
        self._batch = {
            queue: int(resources[f"{source.capitalize()}Source"]["Properties"]["BatchSize"])
            for queue, source in OF_QUEUE.items()
        }
        self._cached_ms = 1_000 * int(resources["ApiAuthorizer"]["Properties"]["AuthorizerResultTtlInSeconds"])
        for name in FUNCTIONS:
            setattr(self, name, self._metered(name, getattr(self, name)))
        self.authorizer = self._remembered(self.authorizer)

    def _metered(self, name: str, handler: Callable[..., Any]) -> Handler:
        memory = memory_of(name)
        return lambda event, context: self.meter.invoke(name, memory, lambda: handler(event, context))

    def _remembered(self, authorizer: Handler) -> Handler:
        """The gateway asks again only when the answer for this key is too old."""
        known: dict[str, tuple[int, dict[str, Any]]] = {}

        def ask(event: dict[str, Any], context: Any) -> dict[str, Any]:
            who, now = event["headers"]["authorization"], self.clock.now_ms()
            if who not in known or now - known[who][0] >= self._cached_ms:
                known[who] = now, authorizer(event, context)
            return known[who][1]

        return ask

    def request(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        self.meter.asked_for()
        return super().request(method, path, body)

    def receive(self, queue: str, limit: int = 0) -> dict[str, Any] | None:
        """A batch as the event source mapping of the template would hand it over."""
        return super().receive(queue, limit or self._batch.get(queue, 10))

    def deliver(self, queue: str, handler: Handler, event: dict[str, Any]) -> list[str]:
        """Time passes, unevenly, as it does: rows full of equal times would deflate better than real ones."""
        self.clock.advance(self._pace.randrange(*BETWEEN_MS))
        self.meter.received(OF_QUEUE[queue], queue, event["Records"])
        return super().deliver(queue, handler, event)


@cache
def memory_of(function: str) -> int:
    """MB, as the template sets it by default."""
    found = template()
    memory = found["Resources"][f"{function.capitalize()}Function"]["Properties"]["MemorySize"]
    return int(found["Parameters"][memory["Ref"]]["Default"] if isinstance(memory, dict) else memory)


@contextmanager
def metered_world() -> Iterator[MeteredWorld]:
    """A stack of its own under a meter, for the length of the block."""
    meter = Meter()
    with meter.watching():
        world = MeteredWorld(meter)
        try:
            yield world
        finally:
            world.close()
