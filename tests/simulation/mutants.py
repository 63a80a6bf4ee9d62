"""Safety mechanisms switched off one by one, so that a scenario can show what each of them prevents."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import msgspec

from ductor.app.attempts import Attempts, Row, _item
from ductor.app.commit import Committed, Committer, Outcome, _sealed
from ductor.app.coordinator import Coordinator
from ductor.app.counting import Tally
from ductor.app.dispatch import Dispatcher
from ductor.app.stalls import Stalls
from ductor.engine.context import TickContext
from ductor.engine.graph import Graph
from ductor.model import transition as tr
from ductor.model.attempt import Attempt, AttemptTask
from ductor.model.intent import Intent
from ductor.model.run import RunState
from ductor.ports import Delete, Expect, Item, Op, Outgoing, Put, Queue
from ductor.steps.action import ActionBehaviour

Mutant = AbstractContextManager[Any]


def empty_ticks_commit() -> Mutant:
    """`applied` holds only what is new, and a tick without transitions commits as well."""

    def commit(
        self: Committer,
        graph: Graph,
        state: RunState,
        intents: Sequence[Intent],
        applied: tuple[str, ...],
        also: Sequence[Op] = (),
    ) -> Committed:
        version, last = state.version, state.last
        tally = Tally(state)
        result = self._run(graph, state, intents, tally)
        self._store_first(state.run_id, version, last, result)
        item = _sealed(version, result, tuple(intent.id for intent in intents), tally.used)
        return self._write(item, version, result, also)

    return patch.object(Committer, "commit", commit)


def resends_what_it_computes_anew() -> Mutant:
    """A redelivered intent is ticked again, and only what that asks for is sent."""
    original = Coordinator._tick_once

    def tick_once(self: Coordinator, state: RunState, intents: list[Intent]) -> Any:
        state.last.applied = ()
        return original(self, state, intents)

    return patch.object(Coordinator, "_tick_once", tick_once)


def nobody_looks_after_attempts() -> Mutant:
    """The first look comes after a thousand years."""
    return patch("ductor.steps.action.CHECK_MS", 31_536_000_000_000)


def refusals_escape() -> Mutant:
    """A task that the queue refuses is not judged on its own."""

    def start(self: Dispatcher, tasks: Sequence[tuple[str, AttemptTask]]) -> list[Intent]:
        self._steps.send([Outgoing(msgspec.json.encode(task), dedup_id=mark) for mark, task in tasks])
        return []

    return patch.object(Dispatcher, "_start", start)


def believes_in_batches(queue: Queue, messages: Sequence[Outgoing]) -> None:
    """A send that was answered has sent everything."""
    queue.send(messages)


def rows_are_overwritten() -> Mutant:
    """The last writer of an attempt row wins."""

    def replace(self: Attempts, row: Row, changed: Attempt) -> Row | None:
        self._table.write((Put(_item(changed, row.version + 1), Expect.ANY),))
        row.attempt = changed
        row.version += 1
        return None

    return patch.object(Attempts, "replace", replace)


def ends_at_once() -> Mutant:
    """A failing run ends without waiting for its attempts."""
    from ductor.engine.decide import decide_end as original

    def decide_end(ctx: TickContext) -> Iterable[tr.Transition]:
        if ctx.state.ending is not None and not ctx.state.status.terminal:
            yield tr.RunEnded(ctx.state.ending, error=ctx.state.error, reason=ctx.state.reason)
        else:
            yield from original(ctx)

    return patch("ductor.engine.tick.decide_end", decide_end)


def nothing_is_revoked() -> Mutant:
    """What a failing run has handed out stays in the queue."""
    return patch.object(Attempts, "revoke", lambda self, task, now: None)


def inputs_are_not_stored() -> Mutant:
    """The commit refers to values that nobody has stored."""

    def store_first(self: Committer, run_id: str, version: int, last: Any, result: Any) -> None:
        original(self, run_id, version, last, replace(result, stores=()))

    original = Committer._store_first
    return patch.object(Committer, "_store_first", store_first)


def retries_render_again() -> Mutant:
    """The next attempt's input is computed from what is true then."""
    return patch.object(ActionBehaviour, "due", ActionBehaviour.start)


def stalled_intents_are_dropped() -> Mutant:
    """What arrives for a stalled run is acknowledged and forgotten."""
    return patch.object(Stalls, "_keep", lambda self, item, intents: True)


def stall_rows_go_first() -> Mutant:
    """A redrive deletes what was kept before it has sent it."""
    original = Stalls._redrive

    def redrive(self: Stalls, item: Item, state: RunState, intent: Intent, rest: Sequence[Intent]) -> bool:
        rows = self._rows(item)
        for row in rows:
            self._table.write((Delete(row.pk, row.sk),))
        self._faults.at("coordinator.after_replay")
        return original(self, item, state, intent, rest)

    return patch.object(Stalls, "_redrive", redrive)


def history_is_not_put() -> Mutant:
    """The row of the last tick is not written before the next commit."""

    def store_first(self: Committer, run_id: str, version: int, last: Any, result: Any) -> None:
        original(self, run_id, version, type(last)(), result)

    original = Committer._store_first
    return patch.object(Committer, "_store_first", store_first)


def losers_send() -> Mutant:
    """After a lost race the loser's own commands are sent."""

    def write(self: Committer, item: Item, version: int, result: Any, also: Sequence[Op]) -> Committed:
        done = original(self, item, version, result, also)
        return Committed(Outcome.LOST, result.state, result.commands) if done.outcome is Outcome.LOST else done

    original = Committer._write
    return patch.object(Committer, "_write", write)


def time_runs_backwards() -> Mutant:
    """A tick believes its own clock."""
    original = TickContext.__init__

    def init(self: TickContext, graph: Graph, state: RunState, now: int, load: Any) -> None:
        original(self, graph, state, now, load)
        self.now = now

    return patch.object(TickContext, "__init__", init)


def missing_runs_are_dropped() -> Mutant:
    """An intent for a run that is not there is given up at its first delivery."""
    return patch("ductor.app.coordinator.MISSING_TRIES", 1)


def headers_have_no_limit() -> Mutant:
    """The size of a header is left to the table."""
    return patch("ductor.app.commit.MAX_HEADER_BYTES", 10**9)
