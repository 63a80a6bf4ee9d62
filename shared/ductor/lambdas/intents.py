"""A batch of the intents queue on Lambda: run after run, and what of it must come again.

SQS blocks a group while one of its messages is in flight, so whatever comes again is made visible soon; and a record
that comes again takes all later ones of its group with it, so that their order holds. Remembers nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from typing import Protocol

import msgspec

from ductor.app.coordinator import Coordinator, Handled, retry_after_ms
from ductor.lambdas.holding import HeldSends
from ductor.lambdas.poison import HOPELESS, SUSPICIOUS, Poison
from ductor.lambdas.telemetry import Telemetry
from ductor.ports import Message, UnavailableError


class IntentsEnd(Protocol):
    """What is done to records that Lambda will not simply acknowledge."""

    def retry(self, receipts: Sequence[str], *, delay_ms: int) -> None: ...

    def bury(self, messages: Sequence[Message], reason: str) -> None:
        """Copy to the dead letters; the record itself counts as dealt with."""
        ...


class Verdict(msgspec.Struct):
    """Which messages of a group come again. `broken`: how the code itself failed; empty when the storage was away."""

    failed: list[Message] = []
    broken: str = ""


class IntentBatches:
    """Handles the batches of one function, one at a time."""

    def __init__(
        self, coordinator: Coordinator, poison: Poison, queue: IntentsEnd, tasks: HeldSends, telemetry: Telemetry
    ) -> None:
        self._coordinator = coordinator
        self._poison = poison
        self._queue = queue
        self._tasks = tasks
        self._telemetry = telemetry

    def handle(self, messages: Sequence[Message]) -> list[str]:
        """The ids of the messages that must come again; Lambda removes all others."""
        self._tasks.begin()
        groups = _by_group(messages)
        suspect = _most_suspicious(groups)
        if suspect is None:
            failed = [message for run_id, group in groups.items() for message in self._tick(run_id, group).failed]
            failed += self._unsent(groups, failed)
        else:
            # Before the tick that may kill this process: then they already wait for another one.
            others = [message for message in messages if message.group != suspect]
            self._again(others, 0)
            failed = others + self._alone(suspect, groups[suspect])
        self._telemetry.count("IntentsHandled", len(messages) - len(failed))
        self._telemetry.count("IntentsReturned", len(failed))
        self._telemetry.flush()
        return [message.id for message in failed]

    def _unsent(self, groups: Mapping[str, list[Message]], failed: list[Message]) -> list[Message]:
        """Send what the commits asked for; of runs for which that fails all intents come again."""
        runs = self._tasks.runs
        try:
            runs = self._tasks.flush()
        except Exception:
            # A missing permission, say. Delivered again, each run sends its tasks itself and fails alone.
            self._telemetry.log.exception("the steps queue refuses; the intents come again")
            self._telemetry.count("TicksFailed", 1)
        left = [message for run_id in runs for message in groups[run_id] if message not in failed]
        if left:
            self._telemetry.log.warning("the steps queue did not take all tasks; %d intents come again", len(left))
        return self._again(left, retry_after_ms(1)) if left else left

    def _alone(self, run_id: str, group: list[Message]) -> list[Message]:
        """Tick a suspicious run under a mark, or stall it when the mark of an earlier tick is still there."""
        receives = _receives(group)
        self._telemetry.count("SuspiciousGroups", 1)
        try:
            if receives >= HOPELESS and (mark := self._poison.mark_of(run_id)) is not None:
                return self._stall(run_id, group, receives, mark)
            self._poison.mark(run_id)
            verdict = self._tick(run_id, group)
            if verdict.broken:
                self._poison.mark(run_id, verdict.broken)
            else:
                self._poison.survived(run_id)
        except UnavailableError as fault:
            self._telemetry.log.warning("run %s: %s", run_id, fault)
            return self._again(group, retry_after_ms(receives))
        except Exception:
            self._telemetry.log.exception("run %s can be neither ticked nor stalled; its intents come again", run_id)
            self._telemetry.count("TicksFailed", 1)
            return self._again(group, retry_after_ms(receives))
        return verdict.failed

    def _stall(self, run_id: str, group: list[Message], receives: int, mark: str) -> list[Message]:
        why = f"failed: {mark}" if mark else "died"
        reason = f"its intents were delivered {receives} times, and whoever ticked them {why}"
        if self._poison.stall(run_id, [message.body for message in group], reason):
            self._telemetry.count("RunsStalled", 1)
            self._telemetry.log.error("run %s is stalled: %s", run_id, reason)
        else:
            self._queue.bury(group, f"run {run_id} does not exist; {reason}")
        return []

    def _tick(self, run_id: str, group: list[Message]) -> Verdict:
        first = _receives(group) == 1
        with self._telemetry.about(run_id), self._tasks.holding(run_id) if first else nullcontext():
            try:
                handled = self._coordinator.handle(group)
                return Verdict(self._settle(handled, group))
            except UnavailableError as fault:
                self._telemetry.log.warning("run %s: %s", run_id, fault)
                return Verdict(self._again(group, retry_after_ms(_receives(group))))
            except Exception as fault:
                self._telemetry.log.exception("run %s: the tick failed; its intents come again", run_id)
                self._telemetry.count("TicksFailed", 1)
                return Verdict(
                    self._again(group, retry_after_ms(_receives(group))), broken=f"{type(fault).__name__}: {fault}"
                )

    def _settle(self, handled: Handled, group: list[Message]) -> list[Message]:
        by_receipt = {message.receipt: message for message in group}
        for receipt, reason in handled.buried:
            self._telemetry.log.error("a message was buried: %s", reason)
            self._queue.bury([by_receipt[receipt]], reason)
        self._telemetry.count("IntentsBuried", len(handled.buried))
        if not handled.later:
            return []
        late = {receipt for receipt, _ in handled.later}
        gone = {receipt for receipt, _ in handled.buried}
        first = next(place for place, message in enumerate(group) if message.receipt in late)
        left = [message for message in group[first:] if message.receipt not in gone]
        return self._again(left, max(delay for _, delay in handled.later))

    def _again(self, messages: list[Message], delay_ms: int) -> list[Message]:
        """Shorten their visibility; where that fails they come again when the queue's own has run out."""
        try:
            self._queue.retry([message.receipt for message in messages], delay_ms=delay_ms)
        except (UnavailableError, ValueError) as fault:
            self._telemetry.log.warning("messages stay hidden for longer: %s", fault)
        return messages


def _by_group(messages: Sequence[Message]) -> dict[str, list[Message]]:
    groups: dict[str, list[Message]] = {}
    for message in messages:
        groups.setdefault(message.group, []).append(message)
    return groups


def _most_suspicious(groups: Mapping[str, list[Message]]) -> str | None:
    """The group delivered most often. Among equals the number of deliveries chooses, so that each has its turn."""
    most = max((_receives(group) for group in groups.values()), default=0)
    if most < SUSPICIOUS:
        return None
    equal = sorted(run_id for run_id, group in groups.items() if _receives(group) == most)
    return equal[most % len(equal)]


def _receives(group: Sequence[Message]) -> int:
    return max(message.receives for message in group)
