"""A queue in memory with SQS's visibility, group order and de-duplication, all by the virtual clock. Never waits."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Sequence
from heapq import heappop, heappush

from ductor.adapters import rules
from ductor.ports import Clock, Message, Outgoing, QueueName


class _Entry:
    """A stored message. `turn` None: in flight, delayed or behind an older one. `visible_at` 0: not hidden."""

    __slots__ = ("body", "group", "id", "receives", "sent_at", "turn", "visible_at")

    def __init__(self, entry_id: int, message: Outgoing, now: int) -> None:
        self.id = entry_id
        self.group = message.group
        self.body = message.body
        self.sent_at = now
        self.receives = 0
        self.visible_at = now + message.delay_ms if message.delay_ms else 0
        self.turn: int | None = None

    def message(self, receipt: str) -> Message:
        return Message(str(self.id), self.body, self.group, receipt, self.receives, self.sent_at)


class MemoryQueue:
    """`ports.Queue` in memory: `intents` with order and de-duplication per group, the others without."""

    def __init__(self, name: QueueName, clock: Clock) -> None:
        self.fifo = name is QueueName.INTENTS
        self._clock = clock
        self._last_id = 0
        self._entries: dict[int, _Entry] = {}
        self._groups: dict[str, list[_Entry]] = {}
        self._ready: list[tuple[int, int]] = []
        self._hidden: list[tuple[int, int]] = []
        self._dedup: dict[tuple[str, str], int] = {}
        self._dead: list[tuple[Message, str]] = []

    def send(self, messages: Sequence[Outgoing]) -> tuple[int, ...]:
        rules.check_outgoing(messages, fifo=self.fifo)
        now = self._clock.now_ms()
        for message in messages:
            if not self.fifo or self._is_fresh(message, now):
                self._append(message, now)
        return ()

    def receive(self, limit: int, *, visibility_ms: int, wait_ms: int = 0) -> tuple[Message, ...]:
        """Take up to `limit` messages; `wait_ms` is ignored, because virtual time does not pass by itself."""
        rules.check_limit(limit)
        rules.check_visibility(visibility_ms)
        now = self._clock.now_ms()
        self._reappear(now)
        until = max(1, now + visibility_ms)
        taken: list[Message] = []
        for entry in sorted(self._next(limit), key=lambda entry: entry.id):
            self._hide(entry, until)
            entry.receives += 1
            taken.append(entry.message(rules.receipt_of(entry.id, entry.receives, entry.group)))
        return tuple(taken)

    def ack(self, receipts: Sequence[str]) -> None:
        now = self._clock.now_ms()
        self._remove(self._held(receipts, now if self.fifo else -1))

    def retry(self, receipts: Sequence[str], *, delay_ms: int) -> None:
        rules.check_visibility(delay_ms)
        now = self._clock.now_ms()
        for entry in self._held(receipts, now):
            self._hide(entry, max(1, now + delay_ms))
        self._reappear(now)

    def release(self) -> None:
        """Make everything in flight visible again: for a world that knows that all receivers before are gone."""
        now = self._clock.now_ms()
        for entry in self._entries.values():
            if entry.receives and entry.visible_at > now:
                self._hide(entry, max(1, now))
        self._reappear(now)

    def dead_letter(self, receipts: Sequence[str], reason: str) -> None:
        gone = self._held(receipts, self._clock.now_ms() if self.fifo else -1)
        self._dead.extend((entry.message(""), reason) for entry in gone)
        self._remove(gone)

    def oldest_age_ms(self) -> int:
        oldest = next(iter(self._entries.values()), None)
        return 0 if oldest is None else max(0, self._clock.now_ms() - oldest.sent_at)

    def dead_letters(self, limit: int = 100) -> tuple[tuple[Message, str], ...]:
        """The dead messages, oldest first, each with its reason. Their receipts are empty."""
        rules.check_limit(limit)
        return tuple(sorted(self._dead, key=lambda dead: int(dead[0].id))[:limit])

    def redrive(self, limit: int = 100) -> int:
        """Send up to `limit` dead messages again, oldest first, as new ones; how many."""
        rules.check_limit(limit)
        dead = sorted(self._dead, key=lambda one: int(one[0].id))[:limit]
        self.send(rules.again([message for message, _ in dead], self._clock.now_ms()))
        self._dead = [one for one in self._dead if one not in dead]
        return len(dead)

    def next_visible_at(self) -> int | None:
        """When something can be delivered: now, the moment that something hidden may appear, or None when empty."""
        if self._ready:
            return self._clock.now_ms()
        self._drop_stale()
        return self._hidden[0][0] if self._hidden else None

    def depth(self) -> int:
        """How many messages are not yet acknowledged, those in flight or delayed included."""
        return len(self._entries)

    def _is_fresh(self, message: Outgoing, now: int) -> bool:
        key = (message.group, message.dedup_id)
        if self._dedup.get(key, now) > now:
            return False
        self._dedup[key] = now + rules.DEDUP_WINDOW_MS
        return True

    def _append(self, message: Outgoing, now: int) -> None:
        self._last_id += 1
        entry = _Entry(self._last_id, message, now)
        self._entries[entry.id] = entry
        if self.fifo:
            group = self._groups.setdefault(entry.group, [])
            group.append(entry)
            if len(group) == 1:
                self._give_turn(entry, entry.id)
        elif entry.visible_at:
            heappush(self._hidden, (entry.visible_at, entry.id))
        else:
            self._give_turn(entry, entry.id)

    def _give_turn(self, entry: _Entry, turn: int) -> None:
        entry.turn = turn
        insort(self._ready, (turn, entry.id))

    def _next(self, limit: int) -> list[_Entry]:
        """Up to `limit` deliverable messages by turn; of a group, as many as fit from its oldest on."""
        found: list[_Entry] = []
        for _, entry_id in self._ready[:limit]:
            entry = self._entries[entry_id]
            found.extend(self._groups[entry.group][: limit - len(found)] if self.fifo else (entry,))
            if len(found) >= limit:
                break
        return found

    def _hide(self, entry: _Entry, until: int) -> None:
        if entry.turn is not None:
            del self._ready[bisect_left(self._ready, (entry.turn, entry.id))]
            entry.turn = None
        entry.visible_at = until
        heappush(self._hidden, (until, entry.id))

    def _drop_stale(self) -> None:
        while self._hidden:
            until, entry_id = self._hidden[0]
            entry = self._entries.get(entry_id)
            if entry is not None and entry.visible_at == until:
                return
            heappop(self._hidden)

    def _reappear(self, now: int) -> None:
        appeared: list[_Entry] = []
        while self._hidden and self._hidden[0][0] <= now:
            until, entry_id = heappop(self._hidden)
            entry = self._entries.get(entry_id)
            if entry is not None and entry.visible_at == until:
                entry.visible_at = 0
                appeared.append(entry)
        if self.fifo:
            self._promote(entry.group for entry in appeared)
        else:
            for entry in appeared:
                self._give_turn(entry, self._last_id + 1)

    def _promote(self, groups: Iterable[str]) -> None:
        """Give each group's oldest message its turn, unless one of the group is in flight."""
        for name in dict.fromkeys(groups):
            group = self._groups.get(name)
            if group and group[0].turn is None and not _has_flight(group):
                self._give_turn(group[0], self._last_id + 1)

    def _held(self, receipts: Sequence[str], floor: int) -> list[_Entry]:
        """The messages whose latest delivery these receipts are, and that are hidden until after `floor`."""
        held: dict[int, _Entry] = {}
        for entry_id, receives, _ in map(rules.read_receipt, receipts):
            entry = self._entries.get(entry_id)
            if entry is not None and entry.receives == receives and entry.visible_at > floor:
                held[entry_id] = entry
        return list(held.values())

    def _remove(self, entries: Sequence[_Entry]) -> None:
        for entry in entries:
            del self._entries[entry.id]
            if entry.turn is not None:
                del self._ready[bisect_left(self._ready, (entry.turn, entry.id))]
            if self.fifo:
                group = self._groups[entry.group]
                group.remove(entry)
                if not group:
                    del self._groups[entry.group]
        if self.fifo:
            self._promote(entry.group for entry in entries)


def _has_flight(group: Sequence[_Entry]) -> bool:
    """Whether one is in flight: they are always at the front, before the first that was never delivered."""
    for entry in group:
        if not entry.receives:
            return False
        if entry.visible_at:
            return True
    return False
