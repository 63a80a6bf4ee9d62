"""The in-memory ports with faults in front: they fail, lose replies and repeat, only as the real ones may."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ductor.ports import (
    Conflict,
    Index,
    Item,
    Message,
    Op,
    Outgoing,
    Page,
    Put,
    UnavailableError,
)
from ductor.testing.chaos import Chaos, Crash
from ductor.testing.ledger import Ledger
from ductor.testing.memory import MemoryBlobs, MemoryQueue, MemoryTable, MemoryTimers, VirtualClock


class SkewedClock:
    """An actor's own clock: the world's time, off by a constant (ms)."""

    def __init__(self, clock: VirtualClock, skew_ms: int) -> None:
        self._clock = clock
        self.skew_ms = skew_ms

    def now_ms(self) -> int:
        return self._clock.now + self.skew_ms


class Faulty:
    """The moments before and after a call at which it may fail."""

    def __init__(self, chaos: Chaos) -> None:
        self._chaos = chaos

    def _before(self, call: str) -> None:
        chaos = self._chaos
        if not chaos.on:
            return
        if chaos.strikes(chaos.chances.unavailable):
            chaos.note("unavailable", call)
            raise UnavailableError(f"{call} could not be reached")
        if chaos.strikes(chaos.chances.crash_call):
            chaos.note("crash", f"before {call}")
            raise Crash(f"before {call}")

    def _after(self, call: str) -> None:
        chaos = self._chaos
        if not chaos.on:
            return
        if chaos.strikes(chaos.chances.crash_call):
            chaos.note("crash", f"after {call}")
            raise Crash(f"after {call}")
        if chaos.strikes(chaos.chances.lost_reply):
            chaos.note("reply lost", call)
            raise UnavailableError(f"the reply of {call} was lost")


class FaultyTable(Faulty):
    """`ports.Table`. Other actors may run between a read and what the reader does with it."""

    def __init__(self, inner: MemoryTable, chaos: Chaos, ledger: Ledger) -> None:
        super().__init__(chaos)
        self._inner = inner
        self._ledger = ledger

    def get(self, pk: str, sk: str) -> Item | None:
        self._before("get")
        found = self._inner.get(pk, sk)
        self._chaos.interrupt()
        return found

    def batch_get(self, keys: Sequence[tuple[str, str]]) -> dict[tuple[str, str], Item]:
        self._before("batch_get")
        found = self._inner.batch_get(keys)
        self._chaos.interrupt()
        return found

    def query(
        self,
        pk: str,
        *,
        prefix: str = "",
        low: str | None = None,
        high: str | None = None,
        index: Index | None = None,
        limit: int = 100,
        cursor: str | None = None,
        descending: bool = False,
    ) -> Page:
        self._before("query")
        return self._inner.query(
            pk, prefix=prefix, low=low, high=high, index=index, limit=limit, cursor=cursor, descending=descending
        )

    def write(self, ops: Sequence[Op]) -> Conflict | None:
        self._before("write")
        conflict = self._inner.write(ops)
        if conflict is not None:
            self._chaos.note("conflict", f"op {conflict.index}")
            return conflict
        for op in ops:
            if isinstance(op, Put):
                self._ledger.stored(op.item)
        self._after("write")
        return None

    def remove(self, keys: Sequence[tuple[str, str]]) -> None:
        """A process may die, or be refused, when half of it is done."""
        for some in (keys[: len(keys) // 2], keys[len(keys) // 2 :]):
            self._before("remove")
            self._inner.remove(some)
        self._after("remove")


class FaultyBlobs(Faulty):
    """`ports.Blobs`."""

    def __init__(self, inner: MemoryBlobs, chaos: Chaos) -> None:
        super().__init__(chaos)
        self._inner = inner

    def put(self, key: str, data: bytes) -> None:
        self._before("put")
        self._inner.put(key, data)
        self._after("put")

    def get(self, key: str) -> bytes | None:
        self._before("blob")
        return self._inner.get(key)

    def delete(self, key: str) -> None:
        self._before("delete")
        self._inner.delete(key)
        self._after("delete")

    def keys(self, prefix: str, limit: int) -> tuple[str, ...]:
        self._before("keys")
        return self._inner.keys(prefix, limit)


class FaultyQueue(Faulty):
    """`ports.Queue`. The FIFO queue never loses what it accepted; the steps queue loses, repeats and delays."""

    def __init__(self, inner: MemoryQueue, chaos: Chaos) -> None:
        super().__init__(chaos)
        self._inner = inner
        self._call = "intents" if inner.fifo else "steps"

    def send(self, messages: Sequence[Outgoing]) -> tuple[int, ...]:
        if not self._chaos.on:
            return self._inner.send(messages)
        self._before(f"send to {self._call}")
        chances, strikes = self._chaos.chances, self._chaos.strikes
        refused = [index for index in range(len(messages)) if strikes(chances.partial_send)]
        accepted = [message for index, message in enumerate(messages) if index not in refused]
        if self._inner.fifo:
            self._inner.send(accepted)
        else:
            self._inner.send([twisted for message in accepted for twisted in self._twisted(message)])
        self._after(f"send to {self._call}")
        return tuple(refused)

    def _twisted(self, message: Outgoing) -> Sequence[Outgoing]:
        """What becomes of a message to the workers."""
        chaos, chances = self._chaos, self._chaos.chances
        if chaos.strikes(chances.lost_task):
            chaos.note("task lost", message.dedup_id)
            return ()
        if chaos.strikes(chances.delayed):
            message = msgspec.structs.replace(message, delay_ms=chaos.rng.randrange(20_000))
        return (message, message) if chaos.strikes(chances.duplicate) else (message,)

    def receive(self, limit: int, *, visibility_ms: int, wait_ms: int = 0) -> tuple[Message, ...]:
        return self._inner.receive(limit, visibility_ms=visibility_ms, wait_ms=wait_ms)

    def ack(self, receipts: Sequence[str]) -> None:
        if self._chaos.strikes(self._chaos.chances.lost_ack):
            self._chaos.note("ack lost", self._call)
            return
        self._before(f"ack of {self._call}")
        self._inner.ack(receipts)
        self._after(f"ack of {self._call}")

    def retry(self, receipts: Sequence[str], *, delay_ms: int) -> None:
        self._before(f"retry of {self._call}")
        self._inner.retry(receipts, delay_ms=delay_ms)

    def dead_letter(self, receipts: Sequence[str], reason: str) -> None:
        self._chaos.note("dead letter", reason)
        self._inner.dead_letter(receipts, reason)

    def oldest_age_ms(self) -> int:
        return self._inner.oldest_age_ms()


class FaultyTimers(Faulty):
    """`ports.Timers` and the reading end: wake-ups may be lost when asked for, and may come again after they fired."""

    def __init__(self, inner: MemoryTimers, chaos: Chaos) -> None:
        super().__init__(chaos)
        self._inner = inner

    def arm(self, run_id: str, at: int) -> None:
        self._before("arm")
        if self._chaos.strikes(self._chaos.chances.lost_timer):
            self._chaos.note("timer lost", str(at))
            return
        self._inner.arm(run_id, at)
        self._after("arm")

    def due(self, now: int, limit: int = 100) -> tuple[tuple[str, int], ...]:
        return self._inner.due(now, limit)

    def fired(self, timers: Sequence[tuple[str, int]]) -> None:
        self._inner.fired([timer for timer in timers if not self._chaos.strikes(self._chaos.chances.repeated_timer)])

    def wait(self, now: int, wait_ms: int) -> None:
        """Virtual time does not pass by itself."""
