"""Runs whose intents kill whoever ticks them (out of memory, a native crash): told apart from a storage that is away.

A delivery count alone cannot tell: an outage of two minutes makes every message as old as a poisonous one. So a
suspicious run is marked before its tick, and the mark is taken off again unless the process dies or the code fails.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from ductor.app.headers import HEAD, is_expiring, is_stalled, run_pk
from ductor.app.stalls import Stalls
from ductor.model.errors import clip
from ductor.model.intent import Intent
from ductor.ports import Delete, Item, Put, Table, UnavailableError

SUSPICIOUS: Final = 3
"""Deliveries from which on a run is ticked alone, so that it takes no other with it."""

HOPELESS: Final = 10
"""Deliveries from which on a run that was never seen to survive its tick is stalled instead."""

PROBE: Final = "PROBE"
_TRIES: Final = 8
_MAX_REASON: Final = 1_000


class Poison:
    """Marks suspicious runs, and stalls hopeless ones without ticking them."""

    def __init__(self, table: Table, stalls: Stalls) -> None:
        self._table = table
        self._stalls = stalls

    def mark(self, run_id: str, why: str = "") -> None:
        """Before a tick without a reason, which is that of a death; after one that failed with its own."""
        self._table.write((Put(Item(pk=run_pk(run_id), sk=PROBE, body=clip(why, _MAX_REASON).encode())),))

    def survived(self, run_id: str) -> None:
        self._table.write((Delete(run_pk(run_id), PROBE),))

    def mark_of(self, run_id: str) -> str | None:
        """How the last tick of this run failed, empty when nobody lived to say; None when it came to its end."""
        item = self._table.get(run_pk(run_id), PROBE)
        return None if item is None else item.body.decode("utf-8", "replace")

    def stall(self, run_id: str, bodies: Sequence[bytes], reason: str) -> bool:
        """Keep the intents and show the run as stalled; False when there is no such run. Raises UnavailableError."""
        intents = [intent for body in bodies if (intent := _intent(body)) is not None]
        for _ in range(_TRIES):
            item = self._table.get(run_pk(run_id), HEAD)
            if item is None or is_expiring(item):
                return False
            begun = self._stalls.take(item, intents) if is_stalled(item) else self._stalls.begin(item, intents, reason)
            if begun:
                self.survived(run_id)
                return True
        raise UnavailableError(f"lost {_TRIES} races in a row for run {run_id}")


def _intent(body: bytes) -> Intent | None:
    """None for a body that is no intent: it can neither be kept nor replayed."""
    try:
        return _decode(body)
    except (msgspec.DecodeError, msgspec.ValidationError):
        return None


_decode = msgspec.json.Decoder(Intent).decode
