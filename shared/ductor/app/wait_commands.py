"""Carries out the commands of pauses that wait for events: look back, check, close. All of it may be repeated."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import cast

import msgspec

from ductor.app.dispatch import Handler
from ductor.app.event_rows import EventRows
from ductor.app.waiters import Claimed, Waiters
from ductor.engine.graph import Graph
from ductor.model.command import CheckWaiter, CloseWaiter, Command, ScanLookback
from ductor.model.intent import Intent, IntentKind
from ductor.model.run import RunState
from ductor.model.waiting import Waiter, event_mark
from ductor.ports import Clock, Item


class WaitCommands:
    """The handlers, for `Dispatcher`. What they find is told to the run by intents with ids of this sending."""

    def __init__(self, waiters: Waiters, events: EventRows, clock: Clock) -> None:
        self._waiters = waiters
        self._events = events
        self._clock = clock

    def handlers(self) -> Mapping[type, Handler]:
        """By the type of command."""
        return {ScanLookback: self._scan, CheckWaiter: self._check, CloseWaiter: self._close}

    def _scan(self, _graph: Graph, state: RunState, command: Command, mark: str) -> Iterable[Intent]:
        asked = cast(ScanLookback, command)
        return _marked(self._look_back(state, asked.node, asked.generation), mark)

    def _check(self, _graph: Graph, state: RunState, command: Command, mark: str) -> Iterable[Intent]:
        asked = cast(CheckWaiter, command)
        found = self._look_back(state, asked.node, asked.generation) if asked.scan else []
        return _marked([*self._waiters.held(state.run_id, asked.node, asked.generation), *found], mark)

    def _close(self, _graph: Graph, state: RunState, command: Command, mark: str) -> Iterable[Intent]:
        asked = cast(CloseWaiter, command)
        node, generation = asked.node, asked.generation
        self._waiters.close(state.run_id, node, generation, self._clock.now_ms(), ended=not asked.answer)
        if not asked.answer:
            self._waiters.remove(state.run_id, node, generation)
            return ()
        closed = Intent(
            id="",
            run_id=state.run_id,
            kind=IntentKind.WAIT_CLOSED,
            at=self._clock.now_ms(),
            node=node,
            generation=generation,
        )
        # In this order: the run applies what its events decide first, and the closing only if it still waits then.
        return _marked([*self._waiters.held(state.run_id, node, generation), closed], mark)

    def _look_back(self, state: RunState, node: str, generation: int) -> list[Intent]:
        """Events that were published before the pause began, oldest first, claimed for it."""
        found: list[Intent] = []
        for _, listed in self._waiters.registered(state.run_id, node, generation):
            for item, waiter in self._waiters.rows_of(listed):
                found += self._look_back_for(state.origin.tenant, item, waiter)
        return found

    def _look_back_for(self, tenant: str, item: Item, waiter: Waiter) -> list[Intent]:
        pause = self._waiters.pause(waiter)
        one, found = pause.on[waiter.place], list[Intent]()
        for event in self._events.since(tenant, one.event_name, one.correlation_key, pause.since - pause.lookback_ms):
            mark = event_mark(event.event_name, event.correlation_key, event.event_id)
            if mark in waiter.seen or not self._waiters.holds(waiter, event):
                continue
            claimed, intent = self._waiters.claim(item, event)
            found += [intent] if intent is not None else []
            if len(found) == one.count or claimed is Claimed.LOST:
                break
        return found


def _marked(intents: list[Intent], mark: str) -> list[Intent]:
    """Not the id under which a publisher tells it: that may stand in `applied`, and each would cause the other."""
    return [msgspec.structs.replace(intent, id=f"{mark}:{place}") for place, intent in enumerate(intents)]
