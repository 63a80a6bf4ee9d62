"""Runs that the coordinator cannot advance: their intents are kept in order, shown, and replayed by a redrive.

A stalled run blocks nobody and loses nothing. While it is stalled its state is not decoded, except by a redrive or a
terminate, which may find that a newer release can read it again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from ductor.app.commit import Committer, EngineFaultError, Outcome
from ductor.app.dispatch import Dispatcher
from ductor.app.headers import STALL, Stall, header_item, mark_stalled, request_sk
from ductor.app.lifecycle import stall_row
from ductor.app.requests import outcome_put
from ductor.model.command import Announce
from ductor.model.errors import clip
from ductor.model.intent import OPERATOR_KINDS, Intent, IntentKind
from ductor.model.run import RunState
from ductor.model.transition import OperatorAudited
from ductor.ports import Clock, Delete, Expect, Faults, Ids, Item, Put, Table

KEPT_PREFIX: Final = "STALL#"

_UNSTICK: Final = frozenset({IntentKind.REDRIVE, IntentKind.TERMINATE})


class Kept(msgspec.Struct, frozen=True):
    """Body of a row `STALL#<since>#<n>`: intents that arrived while the run was stalled, in order."""

    intents: tuple[Intent, ...]


class Stalls:
    """Begins, feeds and ends stalls. Every method returns False after a lost race: load the header and try again."""

    def __init__(
        self, *, table: Table, committer: Committer, dispatcher: Dispatcher, clock: Clock, ids: Ids, faults: Faults
    ) -> None:
        self._table = table
        self._committer = committer
        self._dispatcher = dispatcher
        self._clock = clock
        self._ids = ids
        self._faults = faults

    def begin(self, item: Item, intents: Sequence[Intent], reason: str) -> bool:
        """Mark the run and keep the intents that it failed on, in one write.

        A redrive or terminate among them is not kept: it is the way out, and False says that there is more to do.
        """
        failed = tuple(intent for intent in intents if intent.kind not in _UNSTICK)
        since = self._clock.now_ms()
        marked = msgspec.structs.replace(mark_stalled(item, since), version=item.version + 1)
        note = Item(pk=item.pk, sk=STALL, body=_encode(Stall(clip(reason, 2048), since)))
        kept = Item(pk=item.pk, sk=_kept_sk(since, 1), body=_encode(Kept(failed)))
        told = stall_row(item, "stalled", since, since, reason)
        conflict = self._table.write((Put(marked, item.version), Put(note), Put(kept, Expect.ABSENT), told))
        self._faults.at("coordinator.after_stall")
        return conflict is None and len(failed) == len(intents)

    def take(self, item: Item, intents: Sequence[Intent]) -> bool:
        """Intents for a stalled run: kept, unless one of them is a redrive or a terminate."""
        intents = self._unanswered(item.pk, intents)
        way_out = next((intent for intent in intents if intent.kind in _UNSTICK), None)
        if way_out is None:
            return self._keep(item, intents)
        try:
            state = self._committer.read(item)
            self._committer.graph(state)
        except (msgspec.DecodeError, msgspec.ValidationError, EngineFaultError) as fault:
            return self._still_stalled(item, intents, str(fault))
        rest = [intent for intent in intents if intent is not way_out]
        if way_out.kind is IntentKind.REDRIVE:
            return self._redrive(item, state, way_out, rest)
        return self._terminate(item, state, way_out, rest)

    def _unanswered(self, pk: str, intents: Sequence[Intent]) -> list[Intent]:
        """Without requests that have an outcome already: their repeats change nothing."""
        keys = [(pk, request_sk(intent.request_id)) for intent in intents if intent.kind in OPERATOR_KINDS]
        answered = {sk for _, sk in self._table.batch_get(keys)} if keys else set()
        return [
            intent
            for intent in intents
            if intent.kind not in OPERATOR_KINDS or request_sk(intent.request_id) not in answered
        ]

    def _keep(self, item: Item, intents: Sequence[Intent]) -> bool:
        since = _since(item)
        rows = self._table.query(item.pk, prefix=f"{KEPT_PREFIX}{since}#", limit=1, descending=True).items
        number = int(rows[0].sk.rsplit("#", 1)[1]) + 1 if rows else 1
        known = {intent.id for intent in _read_kept(rows)} if rows else set()
        new = tuple(intent for intent in intents if intent.id not in known)
        if not new:
            return True
        kept = Item(pk=item.pk, sk=_kept_sk(since, number), body=_encode(Kept(new)))
        return self._table.write((Put(kept, Expect.ABSENT),)) is None

    def _redrive(self, item: Item, state: RunState, redrive: Intent, rest: Sequence[Intent]) -> bool:
        """Commands first, then the kept intents with fresh ids, then the header, and the rows last.

        A crash in between repeats what was sent, which is harmless; nothing is deleted before it was sent.
        """
        rows = self._rows(item)
        graph = self._committer.graph(state)
        self._dispatcher.send(graph, state, state.last.commands, fresh=True)
        self._replay([*_read_kept(rows), *rest])
        freed = msgspec.structs.replace(header_item(state), version=item.version + 1)
        now = self._clock.now_ms()
        answer = outcome_put(state.run_id, _audited(redrive, "applied"), now)
        told = stall_row(freed, "redriven", _since(item), now, redrive.reason)
        conflict = self._table.write((Put(freed, item.version), answer, Delete(item.pk, STALL), told))
        if conflict is not None:
            return False
        for row in rows:
            self._table.write((Delete(row.pk, row.sk),))
        return True

    def _terminate(self, item: Item, state: RunState, intent: Intent, rest: Sequence[Intent]) -> bool:
        """End the run. Other operators' requests come again and are answered by the run that has ended.

        The last commit before the stall may not have been followed by its sends. Its work is not begun any more; what
        it tells the world is told, because this commit overwrites it.
        """
        rows = self._rows(item)
        graph = self._committer.graph(state)
        self._dispatcher.send(graph, state, [told for told in state.last.commands if isinstance(told, Announce)])
        self._replay([other for other in (*_read_kept(rows), *rest) if other.kind in OPERATOR_KINDS])
        done = self._committer.commit(graph, state, [intent], (intent.id,), also=(Delete(item.pk, STALL),))
        if done.outcome is Outcome.LOST or done.state is None:
            return False
        self._dispatcher.send(graph, done.state, done.commands)
        for row in rows:
            self._table.write((Delete(row.pk, row.sk),))
        return True

    def _replay(self, intents: Sequence[Intent]) -> None:
        """Send intents again under ids that nobody has seen."""
        mark = self._ids.token(6)
        self._dispatcher.intend([msgspec.structs.replace(intent, id=f"{intent.id}~{mark}") for intent in intents])
        self._faults.at("coordinator.after_replay")

    def _still_stalled(self, item: Item, intents: Sequence[Intent], why: str) -> bool:
        """The state is as unreadable as before: ways out are rejected with the reason, everything else is kept."""
        for way_out in intents:
            if way_out.kind in _UNSTICK:
                rejected = _audited(way_out, "rejected", "STATE_UNREADABLE", clip(why, 512))
                self._table.write((outcome_put(way_out.run_id, rejected, self._clock.now_ms()),))
        return self._keep(item, [intent for intent in intents if intent.kind not in _UNSTICK])

    def _rows(self, item: Item) -> list[Item]:
        rows: list[Item] = []
        cursor: str | None = None
        while True:
            page = self._table.query(item.pk, prefix=f"{KEPT_PREFIX}{_since(item)}#", cursor=cursor)
            rows.extend(page.items)
            cursor = page.cursor
            if cursor is None:
                return rows


def _since(item: Item) -> int:
    """When the stall of a marked header began, epoch ms."""
    assert item.i3 is not None  # only marked headers come here
    return int(item.i3[1].split("#", 1)[0])


def _kept_sk(since: int, number: int) -> str:
    return f"{KEPT_PREFIX}{since}#{number:06d}"


def _read_kept(rows: Sequence[Item]) -> list[Intent]:
    return [intent for row in rows for intent in _decode(row.body).intents]


def _audited(intent: Intent, outcome: str, code: str = "", message: str = "") -> OperatorAudited:
    return OperatorAudited(
        intent_id=intent.id,
        operation=intent.kind.value,
        outcome=outcome,
        actor=intent.actor,
        request_id=intent.request_id,
        request_hash=intent.request_hash,
        reason=intent.reason,
        code=code,
        message=message,
    )


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Kept).decode
