"""Carries out the commands of digest steps: join, look, close, hand the lead on, leave. All of it may be repeated.

A batch belongs to the leader whose step completed with it. While a window is open, whoever changes its row leads; once
it is closed its leader alone may complete with it, and loses it only when its step has visibly ended otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from typing import Final

import msgspec

from ductor.app.descent import readable
from ductor.app.digest_rows import MAX_BATCH_BYTES, DigestRows, Seat
from ductor.app.dispatch import Handler
from ductor.app.headers import HEAD, run_pk
from ductor.app.payloads import PayloadStore
from ductor.engine.graph import Graph
from ductor.model.command import AskDigest, CloseDigest, Command, LeaveDigest, YieldDigest
from ductor.model.digest import DigestWait, Member, Role, Who, Window, WindowStatus, digest_pk
from ductor.model.enums import NodeStatus, RunStatus
from ductor.model.intent import Intent, IntentKind
from ductor.model.json import JSON
from ductor.model.payload import NULL, Payload
from ductor.model.run import NodeState, RunState
from ductor.ports import Clock, Item, Table, UnavailableError

TRIES: Final = 50
"""How often a window is read again because others were faster, before the message waits."""

_replace = msgspec.structs.replace


class Leader(StrEnum):
    """How the leader of a window is."""

    ALIVE = "alive"
    RESTING = "resting"
    DELIVERED = "delivered"
    GONE = "gone"


class Digests:
    """The handlers, for `Dispatcher`. What they find is told to the runs by intents with ids of this sending."""

    def __init__(self, table: Table, payloads: PayloadStore, clock: Clock) -> None:
        self._table = table
        self._rows = DigestRows(table)
        self._payloads = payloads
        self._clock = clock

    def handlers(self) -> Mapping[type, Handler]:
        """By the type of command."""
        return {AskDigest: self.ask, CloseDigest: self.close, YieldDigest: self.pass_on, LeaveDigest: self.leave}

    def ask(self, _graph: Graph, state: RunState, command: Command, mark: str) -> Iterable[Intent]:
        """Join, or look what has become of the window."""
        assert isinstance(command, AskDigest)
        who = Who(state.run_id, command.node, command.generation)
        entry = _waiting(state, who)
        if entry is None:
            return ()

        def once() -> list[Intent] | None:
            seat = self._rows.seat(who)
            return self._join(state, who, entry) if seat is None else self._look(state, seat)

        return _marked(_settled(once), mark)

    def close(self, _graph: Graph, state: RunState, command: Command, mark: str) -> Iterable[Intent]:
        """Close the window if the run leads it, and give it its members."""
        assert isinstance(command, CloseDigest)
        who = Who(state.run_id, command.node, command.generation)
        if _waiting(state, who) is None:
            return ()
        return _marked(_settled(lambda: self._close(state, who)), mark)

    def pass_on(self, _graph: Graph, state: RunState, command: Command, mark: str) -> Iterable[Intent]:
        """A run that is paused does not lead: the oldest member that is not takes over, or whoever looks next."""
        assert isinstance(command, YieldDigest)
        who = Who(state.run_id, command.node, command.generation)

        def once() -> list[Intent] | None:
            seat = self._rows.seat(who)
            if seat is None or seat.joined.over or seat.window is None or seat.window_item is None:
                return []
            if seat.window.leader != who or not seat.window.undecided:
                return []
            changed = self._led_by(seat.window, self._heir(seat))
            return self._news(changed) if self._rows.change(seat.window_item, changed) else None

        return _marked(_settled(once), mark)

    def leave(self, _graph: Graph, state: RunState, command: Command, mark: str) -> Iterable[Intent]:
        """The step has ended: with the batch (`delivered`), or otherwise; then the arrival leaves an open window."""
        assert isinstance(command, LeaveDigest)
        who, delivered = Who(state.run_id, command.node, command.generation), command.delivered
        return _marked(_settled(lambda: self._leave(who, delivered=delivered)), mark)

    # Joining and looking

    def _join(self, state: RunState, who: Who, entry: NodeState) -> list[Intent] | None:
        wait = msgspec.convert(self._payloads.load(state.run_id, entry.input), DigestWait)
        origin, now = state.origin, self._clock.now_ms()
        arrival = self._payloads.load(state.run_id, wait.arrival)
        member = Member(who=who, at=now, size=wait.size, arrival=arrival, dedup=wait.dedup)
        pk = digest_pk(origin.tenant, origin.environment, origin.family_slug, who.node, wait.key)
        found = self._rows.newest(pk)
        if found is None:
            return self._open(pk, 1, wait, member)
        number, item, window = found
        if window.status is not WindowStatus.OPEN or now >= window.closes_at:
            told = self._news(window) if window.status is WindowStatus.FULL else []
            opened = self._open(pk, number + 1, wait, member)
            return None if opened is None else [*told, *opened]
        if window.size + member.size > MAX_BATCH_BYTES:
            self._rows.change(item, _replace(window, status=WindowStatus.FULL))
            return None
        joined = self._rows.join(number, item, window, member)
        if joined is None:
            return None
        told = self._news(joined) if joined.status is WindowStatus.FULL and joined.leader != who else []
        return [self._role(who, joined), *told]

    def _open(self, pk: str, number: int, wait: DigestWait, first: Member) -> list[Intent] | None:
        opened = self._rows.open(pk, number, wait, first)
        return None if opened is None else [self._role(first.who, opened)]

    def _look(self, state: RunState, seat: Seat) -> list[Intent] | None:
        who, window, item = seat.who, seat.window, seat.window_item
        if seat.joined.over or window is None or item is None:
            return []
        if window.status is WindowStatus.DONE:
            return self._merged(window, who) if window.leader != who else []
        how = Leader.ALIVE if window.leader == who else self._leader(window)
        if how is Leader.DELIVERED:
            done = self._rows.change(item, _replace(window, status=WindowStatus.DONE))
            return self._merged(window, who) if done else None
        takes = how is Leader.GONE or (how is Leader.RESTING and window.undecided)
        if takes and state.status is not RunStatus.PAUSED:
            window = self._led_by(window, who)
            if not self._rows.change(item, window):
                return None
        return [self._role(who, window)]

    def _leader(self, window: Window) -> Leader:
        """What the leader's header says. Its step's end is there before anything else shows it."""
        who = window.leader
        item = self._header(who.run_id) if who is not None else None
        if who is None or item is None:
            return Leader.GONE
        state = readable(item)
        if state is None:
            return Leader.RESTING
        entry = state.root.nodes.get(who.node)
        if entry is None or entry.generation != who.generation:
            return Leader.GONE
        if entry.status is NodeStatus.COMPLETED and entry.error is None:
            return Leader.DELIVERED
        if entry.status is not NodeStatus.WAITING:
            return Leader.GONE
        return Leader.RESTING if state.status is RunStatus.PAUSED else Leader.ALIVE

    # Closing

    def _close(self, state: RunState, who: Who) -> list[Intent] | None:
        seat = self._rows.seat(who)
        if seat is None or seat.window is None or seat.window_item is None:
            return []
        window = seat.window
        if window.leader != who or window.status is WindowStatus.DONE:
            return self._look(state, seat)
        if window.undecided and not self._rows.change(seat.window_item, _replace(window, status=WindowStatus.CLOSED)):
            return None
        return [self._told(who, IntentKind.DIGEST_CLOSED, {"into": ""}, self._batch(seat))]

    def _batch(self, seat: Seat) -> Payload:
        """The arrivals in the order in which they came; of those with one dedup key the first."""
        arrivals: list[JSON] = []
        seen: set[str] = set()
        for member in self._rows.members(seat.joined):
            if member.dedup not in seen:
                arrivals.append(member.arrival)
            seen |= {member.dedup} - {""}
        return self._payloads.keep(seat.who.run_id, {"arrivals": arrivals, "count": len(arrivals)})

    # Leaving

    def _leave(self, who: Who, *, delivered: bool) -> list[Intent] | None:
        seat, now = self._rows.seat(who), self._clock.now_ms()
        if seat is None:
            return [] if self._rows.refuse(who, now) else None
        if not seat.joined.over:
            return None if not self._rows.leave(seat, self._left(seat, delivered=delivered), now) else self._parted(who)
        return self._parted(who)

    def _left(self, seat: Seat, *, delivered: bool) -> Window | None:
        """The window without the run; None where nothing changes in it any more."""
        window = seat.window
        if window is None or window.status is WindowStatus.DONE:
            return None
        leads = window.leader == seat.who
        if leads and delivered:
            return _replace(window, status=WindowStatus.DONE)
        member = self._rows.member(seat.joined)
        smaller = _replace(window, count=window.count - 1, size=window.size - (member.size if member else 0))
        return self._led_by(smaller, self._heir(seat)) if leads else smaller

    def _parted(self, who: Who) -> list[Intent]:
        """What the others must hear of a run that has left, once more if this is once more."""
        seat = self._rows.seat(who)
        if seat is None or seat.window is None:
            return []
        window = seat.window
        if window.status is not WindowStatus.DONE:
            return self._news(window)
        if window.leader == who:
            told = [one for each in self._rows.members(seat.joined) for one in self._merged(window, each.who)]
            if told:
                return told
        self._rows.clear(seat)
        return []

    def _heir(self, seat: Seat) -> Who | None:
        """The oldest other member that can lead now."""
        others = (each.who for each in self._rows.members(seat.joined) if each.who != seat.who)
        return next((who for who in others if self._can_lead(who)), None)

    def _can_lead(self, who: Who) -> bool:
        item = self._header(who.run_id)
        state = readable(item) if item is not None else None
        return state is not None and state.status is not RunStatus.PAUSED and _waiting(state, who) is not None

    def _led_by(self, window: Window, who: Who | None) -> Window:
        return _replace(window, leader=who, term=window.term + 1)

    def _header(self, run_id: str) -> Item | None:
        return self._table.get(run_pk(run_id), HEAD)

    # What runs are told

    def _news(self, window: Window) -> list[Intent]:
        """The leader learns that it leads, or that its window is full."""
        return [] if window.leader is None else [self._role(window.leader, window)]

    def _role(self, who: Who, window: Window) -> Intent:
        role = Role(window.leader == who, window.term, window.closes_at, window.status is not WindowStatus.OPEN)
        return self._told(who, IntentKind.DIGEST_ARRIVAL, msgspec.to_builtins(role))

    def _merged(self, window: Window, who: Who) -> list[Intent]:
        into = window.leader.run_id if window.leader else ""
        return [self._told(who, IntentKind.DIGEST_CLOSED, {"into": into})] if into else []

    def _told(self, who: Who, kind: IntentKind, body: JSON, output: Payload = NULL) -> Intent:
        return Intent(
            id="",
            run_id=who.run_id,
            kind=kind,
            at=self._clock.now_ms(),
            node=who.node,
            generation=who.generation,
            body=body,
            output=output,
        )


def _waiting(state: RunState, who: Who) -> NodeState | None:
    """The node while it waits in this generation."""
    entry = state.root.nodes.get(who.node)
    waits = entry is not None and entry.status is NodeStatus.WAITING and entry.generation == who.generation
    return entry if waits and state.ending is None else None


def _settled(once: Callable[[], list[Intent] | None]) -> list[Intent]:
    """Try until nobody else was faster. Raises UnavailableError when somebody always is."""
    for _ in range(TRIES):
        told = once()
        if told is not None:
            return told
    raise UnavailableError("the digest is contended")


def _marked(intents: list[Intent], mark: str) -> list[Intent]:
    return [_replace(intent, id=f"{mark}:{place}") for place, intent in enumerate(intents)]
