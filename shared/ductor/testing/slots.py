"""Concurrency rules for random definitions, and an onlooker who counts who runs under them."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable
from typing import Final

import msgspec

from ductor.app.headers import HEAD, read_header
from ductor.app.slots import HOLDER, SLOT, decode_count
from ductor.model.definition import Definition
from ductor.model.slots import concurrency_of
from ductor.ports import Item, Table

LIMITED: Final = 0.2
"""The share of definitions whose runs limit each other."""

_KEYS: Final = ('"one"', '"one"', "TRIGGER.payload.n", "RUN.root_id", "TRIGGER.payload.nope")
_RULES: Final = ("queue", "queue", "queue", "ON_LIMIT_CANCEL_OLDEST", "drop")


def limited(rng: random.Random, definition: Definition) -> Definition:
    """The definition, sometimes with a rule."""
    if rng.random() >= LIMITED:
        return definition
    rule = {"key": rng.choice(_KEYS), "limit": rng.choice((1, 1, 2)), "on_limit": rng.choice(_RULES)}
    return msgspec.structs.replace(definition, concurrency=rule)


class Crowd:
    """Sees every header as it is committed. `faults` are moments at which more runs had a slot than there are."""

    def __init__(self, definition_of: Callable[[str], Definition]) -> None:
        self.faults: list[str] = []
        self._definition_of = definition_of
        self._running: dict[tuple[str, str], set[str]] = defaultdict(set)
        self._partitions: set[str] = set()

    def miscounted(self, table: Table) -> list[str]:
        """Counts that are not those of their rows."""
        found = []
        for pk in sorted(self._partitions):
            count, rows = table.get(pk, SLOT), table.query(pk, prefix=HOLDER, limit=1_000).items
            if count is not None and decode_count(count).held != len(rows):
                found.append(f"{pk} counts {decode_count(count).held} holders and has {len(rows)}")
        return found

    def stored(self, item: Item) -> None:
        """Count the run in or out."""
        if item.sk == SLOT:
            self._partitions.add(item.pk)
        if item.sk != HEAD or b'"slot":' not in item.body:
            return
        try:
            state = read_header(item)
        except (msgspec.DecodeError, msgspec.ValidationError):
            return
        rule = concurrency_of(self._definition_of(state.origin.definition_id))
        if rule is None or state.slot is None:
            return
        running = self._running[state.origin.family_slug, state.slot.key]
        if state.slot.held and not state.status.terminal:
            running.add(state.run_id)
        else:
            running.discard(state.run_id)
        if len(running) > rule.limit:
            self.faults.append(f"{sorted(running)} run at once under {rule}")
