"""What an onlooker of a simulated world saw: effects, claims, ends, requests, and a trace to read. Judges nothing."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable

import msgspec

from ductor.app.headers import HEAD, is_stalled, listed_as
from ductor.model.enums import RunStatus
from ductor.model.json import JSON
from ductor.ports import Item

TERMINAL = frozenset(status.value for status in RunStatus if status.terminal)


class Effect(msgspec.Struct, frozen=True):
    """One execution of an action: which delivery of which attempt, and what it returned (None: it failed)."""

    run_id: str
    node: str
    attempt: int
    delivery: int
    output: JSON
    number: int


class Claim(msgspec.Struct, frozen=True):
    """A worker took an attempt; `number` places it among all that happened. `stopped`: it had been asked to stop."""

    run_id: str
    node: str
    attempt: int
    delivery: int
    number: int
    stopped: bool


class Ledger:
    """Everything seen, in order of `number`. `tool_calls` are (run, node, key); `repeated` those that had ended.

    `stalls` are (run, since), and whether the run lived on after it: None while it lasts.
    """

    def __init__(self, *, traced: bool = False) -> None:
        self.number = 0
        self.effects: list[Effect] = []
        self.claims: list[Claim] = []
        self.tool_calls: list[tuple[str, str, str]] = []
        self.repeated: list[tuple[str, str]] = []
        self.runs: dict[str, None] = {}
        self.terminal_at: dict[str, int] = {}
        self.requests: dict[str, dict[str, str]] = defaultdict(dict)
        self.trace: list[str] = []
        self.traced = traced
        self.stalls: dict[tuple[str, int], bool | None] = {}
        self.onlookers: list[Callable[[Item], None]] = []

    def tick(self) -> int:
        self.number += 1
        return self.number

    def stored(self, item: Item) -> None:
        """A row was written. Remembers when a run's header first said that the run has ended."""
        for look in self.onlookers:
            look(item)
        if item.sk != HEAD or item.i2 is None:
            return
        run_id = item.pk.removeprefix("R#")
        self.runs.setdefault(run_id)
        self._stall(run_id, item)
        if listed_as(item) in TERMINAL:
            self.terminal_at.setdefault(run_id, self.tick())
        else:
            self.terminal_at.pop(run_id, None)

    def _stall(self, run_id: str, item: Item) -> None:
        if is_stalled(item) and item.i3 is not None:
            self.stalls.setdefault((run_id, int(item.i3[1].split("#")[0])), None)
            return
        for one in [one for one, live in self.stalls.items() if one[0] == run_id and live is None]:
            self.stalls[one] = listed_as(item) not in TERMINAL

    def accepted(self, run_id: str, request_id: str, operation: str) -> None:
        """The API answered `accepted` to an operator."""
        self.requests[run_id][request_id] = operation

    def say(self, text: str) -> None:
        if self.traced:
            self.trace.append(text)
