"""Wakes runs whose next wake-up is overdue: the net under every lost message. Changes no state itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from ductor.app.dispatch import intent_message, send_all
from ductor.app.headers import HEAD, SHARDS, run_pk, sort_time, starting_pk, wake_pk
from ductor.app.trigger import START_WAKE_MS
from ductor.model.intent import Intent, IntentKind
from ductor.ports import Clock, Ids, Index, Item, Outgoing, Queue, Table, UnavailableError

OVERDUE_MS: Final = 30_000
"""How long after its time a wake-up counts as lost; within it timers and busy queues may simply be late."""

PAGE: Final = 100
MAX_PER_SWEEP: Final = 1_000
"""Runs woken by one sweep; the rest is still overdue at the next."""


class Sweeper:
    """One sweep a minute is enough: it only repairs. `also` are bounded chores that every sweep ends with."""

    def __init__(
        self, *, table: Table, intents: Queue, clock: Clock, ids: Ids, also: Sequence[Callable[[], int]] = ()
    ) -> None:
        self._table = table
        self._intents = intents
        self._clock = clock
        self._ids = ids
        self._also = also

    def sweep(self) -> int:
        """Wake every overdue run, a bounded number; how many."""
        before = self._clock.now_ms() - OVERDUE_MS
        woken = 0
        for shard in range(SHARDS):
            woken += self._wake_all(wake_pk(shard), before, MAX_PER_SWEEP - woken)
        for shard in range(SHARDS):  # at last: of a backlog of starts none goes until it is worked off
            woken += self._wake_all(starting_pk(shard), before - START_WAKE_MS, MAX_PER_SWEEP - woken)
        self._chores()
        return woken

    def _wake_all(self, pk: str, before: int, most: int) -> int:
        """Those of a partition whose time has passed, a page more than `most` at the most."""
        woken = 0
        cursor: str | None = None
        while woken < most:
            page = self._table.query(pk, high=sort_time(before), index=Index.I3, limit=PAGE, cursor=cursor)
            send_all(self._intents, [self._wake(item) for item in page.items])
            woken += len(page.items)
            cursor = page.cursor
            if cursor is None:
                break
        return woken

    def _chores(self) -> None:
        """All of them, whichever fail: what one stumbles over must not keep the others from their work for ever."""
        failed: list[Exception] = []
        for chore in self._also:
            try:
                chore()
            except Exception as fault:  # noqa: BLE001 - raised when the others are done
                failed.append(fault)
        told = [fault for fault in failed if not isinstance(fault, UnavailableError)] or failed[:1]
        if len(told) == 1:
            raise told[0]
        if told:
            raise ExceptionGroup("chores of the sweeper", told)

    def _wake(self, item: Item) -> Outgoing:
        """The message has the id of its wake-up: what a queue that is behind still holds is not sent again each minute,

        because within five minutes the queue swallows it.
        """
        run_id, at = item.pk.removeprefix("R#"), item.i3[1].partition("#")[0] if item.i3 else ""
        kind = IntentKind.TIMER_FIRED if self._started(run_id) else IntentKind.START
        intent = Intent(id=f"{run_id}:sweep:{self._ids.token(9)}", run_id=run_id, kind=kind, at=self._clock.now_ms())
        return msgspec.structs.replace(intent_message(intent, self._ids), dedup_id=f"{run_id}:sweep:{kind.value}:{at}")

    def _started(self, run_id: str) -> bool:
        header = self._table.get(run_pk(run_id), HEAD)
        return header is not None and header.version > 1
