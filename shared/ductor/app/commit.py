"""Turns intents into a committed state: runs the tick, stores what the state refers to, writes the header.

Sends nothing: what a commit asks for stands in the state it committed (`state.last.commands`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import Final

import msgspec

from ductor.app.cache import Cache
from ductor.app.counting import Tally
from ductor.app.headers import HEAD, header_item, history_sk, read_header, run_pk
from ductor.app.pages import MAX_PAGE_BYTES, attach, changed, page_put
from ductor.app.payloads import PayloadStore
from ductor.app.requests import outcome_put
from ductor.app.run_index import index_puts
from ductor.engine.behaviour import Behaviour
from ductor.engine.graph import Graph, compile_graph
from ductor.engine.operating import REPEATS
from ductor.engine.tick import Tick, abort, tick
from ductor.model.command import Command
from ductor.model.definition import Definition
from ductor.model.enums import StepType
from ductor.model.errors import StepError, clip
from ductor.model.intent import Intent
from ductor.model.json import JSON, encode
from ductor.model.lineage import step_of
from ductor.model.payload import Payload
from ductor.model.run import MAX_HEADER_BYTES, HistoryRow, LastTick, Origin, RunState
from ductor.model.transition import OperatorAudited, RunForked
from ductor.model.usage import Used
from ductor.ports import Clock, Expect, Faults, Item, Op, Put, Table, UnavailableError

LoadDefinition = Callable[[str, str], Definition]
"""(tenant, definition id) to the published definition, which never changes."""


class Outcome(StrEnum):
    """What came of a tick."""

    COMMITTED = "committed"
    NOTHING = "nothing"
    LOST = "lost"


class Committed(msgspec.Struct, frozen=True):
    """The outcome, the state that is stored now (None after a lost race), and what is to be sent.

    With NOTHING, `commands` are what the intents ask to send again; the state is unchanged.
    """

    outcome: Outcome
    state: RunState | None
    commands: tuple[Command, ...]


class EngineFaultError(Exception):
    """The tick itself failed: a bug, or a state that the engine cannot go on from. Trying again would not help."""


class Committer:
    """Ticks and commits. A lost race is an outcome, not an error."""

    def __init__(
        self,
        *,
        table: Table,
        payloads: PayloadStore,
        definitions: LoadDefinition,
        behaviours: Mapping[StepType, Behaviour],
        clock: Clock,
        faults: Faults,
    ) -> None:
        self._table = table
        self._payloads = payloads
        self._definitions = definitions
        self._behaviours = behaviours
        self._clock = clock
        self._faults = faults
        self._graphs: Cache[str, Graph] = Cache(256)

    def read(self, item: Item) -> RunState:
        """The state in a header row, with its pages at hand.

        Raises msgspec.DecodeError or ValidationError for a row that this release cannot read.
        """
        state = read_header(item)
        state.version = item.version
        state.last.used.headers += len(item.body)
        attach(self._table, state)
        return state

    def graph(self, state: RunState) -> Graph:
        """The compiled definition that the run is pinned to."""
        origin = state.origin
        graph = self._graphs.get(origin.definition_id)
        if graph is None:
            graph = self._compile(origin)
            self._graphs.put(origin.definition_id, graph)
        return graph

    def _compile(self, origin: Origin) -> Graph:
        try:
            return compile_graph(self._definitions(origin.tenant, origin.definition_id), self._behaviours)
        except UnavailableError:
            raise
        except Exception as fault:
            raise EngineFaultError(f"definition {origin.definition_id} does not compile: {fault}") from fault

    def commit(
        self,
        graph: Graph,
        state: RunState,
        intents: Sequence[Intent],
        applied: tuple[str, ...],
        also: Sequence[Op] = (),
    ) -> Committed:
        """Tick `state` with `intents` and commit. Takes ownership of `state`; use the one that comes back.

        `applied` are the ids of the whole batch, those applied by an earlier tick included; `also` is written with the
        header or not at all. Raises EngineFaultError, UnavailableError (then nobody knows whether it was committed:
        load again).
        """
        version, last, tally = state.version, state.last, Tally(state)
        closing = state.status.terminal or (state.tree is not None and state.ending is not None)
        result = self._run(graph, state, intents, tally)
        if not result.transitions:
            return Committed(Outcome.NOTHING, state, result.commands)
        tally.take(intents)
        tally.decide(result, lambda node: graph.by_ref[step_of(node)].step.type)
        tally.write(self._store_first(state.run_id, version, last, result), self._enter(state, last, result, intents))
        state.version, before = version + 1, state.seq - len(result.transitions)
        pages = [page_put(state, page) for page in changed(state, before)] if state.tree is not None else []
        rows = (*pages, *_answers(result))
        if rows:
            tally.share(rows)
        item = _sealed(version, result, applied, tally.used)
        too_large = _too_large(item, pages, MAX_CLOSING_BYTES if closing else MAX_HEADER_BYTES)
        if too_large:
            return self._fail_too_large(graph, version, too_large, intents, applied, also)
        return self._write(item, version, result, (*rows, *also))

    def _run(self, graph: Graph, state: RunState, intents: Sequence[Intent], tally: Tally) -> Tick:
        try:
            return tick(graph, state, intents, self._clock.now_ms(), self._loader(state.run_id, tally))
        except UnavailableError:
            raise
        except Exception as fault:
            raise EngineFaultError(f"{type(fault).__name__}: {clip(str(fault), 512)}") from fault

    def _loader(self, run_id: str, tally: Tally) -> Callable[[Payload], JSON]:
        def load(payload: Payload) -> JSON:
            tally.load(payload)
            return self._payloads.load(run_id, payload)

        return load

    def _store_first(self, run_id: str, version: int, last: LastTick, result: Tick) -> Item | None:
        """What must be there when the new header is seen, and harms nobody if it never is; the history row, if any."""
        for stored in result.stores:
            self._payloads.put(run_id, stored)
        for waiter in result.registrations:
            row = Item(pk=waiter.pk or run_pk(run_id), sk=waiter.sk, body=encode(waiter.body))
            self._table.write((Put(row, Expect.ABSENT),))
        history = history_item(run_id, version, last) if last.transitions else None
        if history is not None:
            self._table.write((Put(history),))
        self._faults.at("coordinator.before_commit")
        return history

    def _enter(self, state: RunState, last: LastTick, result: Tick, intents: Sequence[Intent]) -> list[Put]:
        """Let the run be found by its labels and by what it says of itself."""
        first = never_ticked(last) and not any(intent.findable for intent in intents)
        rows = index_puts(state.origin, result.transitions, first=first)
        for row in rows:
            self._table.write((row,))  # each by itself: DynamoDB bills a transaction double
        return rows

    def _write(self, item: Item, version: int, result: Tick, also: Sequence[Op]) -> Committed:
        state = result.state
        state.last.used.headers += len(item.body)
        conflict = self._table.write((Put(item, version), *also))
        if conflict is not None:
            return Committed(Outcome.LOST, None, ())
        self._faults.at("coordinator.after_commit")
        attach(self._table, state)
        return Committed(Outcome.COMMITTED, state, result.commands)

    def _fail_too_large(
        self,
        graph: Graph,
        version: int,
        size: int,
        intents: Sequence[Intent],
        applied: tuple[str, ...],
        also: Sequence[Op],
    ) -> Committed:
        """Fail the run from its stored state: a write that cannot succeed must not be tried for ever."""
        item = self._table.get(run_pk(intents[0].run_id), HEAD)
        if item is None or item.version != version:
            return Committed(Outcome.LOST, None, ())
        state = self.read(item)
        message = f"the run's state would take {size} bytes; at most {MAX_HEADER_BYTES} are allowed"
        error = StepError("STATE_TOO_LARGE", message, retryable=False)
        tally = Tally(state)
        result = abort(graph, state, intents, error, self._clock.now_ms(), self._loader(state.run_id, tally))
        for stored in result.stores:
            self._payloads.put(state.run_id, stored)
        if not result.transitions:
            return Committed(Outcome.NOTHING, state, result.commands)
        tally.take(intents)
        self._enter(state, state.last, result, intents)
        sealed = _sealed(version, result, applied, tally.used)
        pages = [page_put(state, page) for page in changed(state, state.last.seq)]
        return self._write(sealed, version, result, (*_answers(result), *pages, *also))


def never_ticked(last: LastTick) -> bool:
    """Whether no tick has been committed. A fork's first header holds what it takes along; a stall changes nothing."""
    return not last.transitions or isinstance(last.transitions[0], RunForked)


def _answers(result: Tick) -> list[Put]:
    """The outcomes of the requests that the tick decided."""
    return [
        outcome_put(result.state.run_id, transition, result.state.updated_at)
        for transition in result.transitions
        if isinstance(transition, OperatorAudited) and transition.request_id and transition.code not in REPEATS
    ]


MAX_COMMIT_BYTES: Final = 3_800_000
"""A header and its pages are one transaction (DynamoDB ends them at 4 MB)."""

MAX_CLOSING_BYTES: Final = 390_000
"""A run that is ending anyway may use what is left of a row to close its item scopes, and to tell other runs."""


def _too_large(header: Item, pages: Sequence[Put], limit: int) -> int:
    """The size of the header or page that cannot be stored, 0 = all of them can."""
    if len(header.body) > limit:
        return len(header.body)
    total = len(header.body) + sum(len(put.item.body) for put in pages)
    if total > MAX_COMMIT_BYTES:
        return total
    return max((len(put.item.body) for put in pages if len(put.item.body) > MAX_PAGE_BYTES), default=0)


def history_item(run_id: str, version: int, last: LastTick) -> Item:
    """The history row of the tick that commit `version` applied."""
    row = HistoryRow(version, last.at, last.seq + 1, last.transitions, last.applied)
    return Item(pk=run_pk(run_id), sk=history_sk(row.seq), body=_encode(row))


def _sealed(version: int, result: Tick, applied: tuple[str, ...], used: Used) -> Item:
    """The header row of the state after the tick, with the tick itself in it."""
    state = result.state
    state.version = version + 1
    state.last = LastTick(
        at=state.updated_at,
        seq=state.seq - len(result.transitions),
        applied=applied,
        transitions=result.transitions,
        commands=result.commands,
        used=used,
        nudge=result.nudge,
    )
    return header_item(state)


_encode = msgspec.json.Encoder().encode
