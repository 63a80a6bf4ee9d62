"""The single writer of run state: intents in, one conditional commit per run, commands out, and only then the ack.

Every step here may crash, be repeated, or lose its reply. The order (store what the state will refer to, commit,
send, acknowledge) and the ids kept in the header make a repetition resend and never apply twice.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from ductor.app.cache import Cache
from ductor.app.commit import Committer, EngineFaultError, Outcome
from ductor.app.dispatch import Dispatcher
from ductor.app.headers import HEAD, is_expiring, is_stalled, request_sk, run_pk
from ductor.app.history import recent_history
from ductor.app.pages import StaleRunError, let_go
from ductor.app.requests import read_outcome
from ductor.app.stalls import Stalls
from ductor.engine.announcing import telling
from ductor.engine.operating import DUPLICATE, REUSED
from ductor.model.errors import StepError
from ductor.model.intent import OPERATOR_KINDS, Intent, IntentKind
from ductor.model.run import RunState
from ductor.ports import Faults, Message, Table, UnavailableError, Unit

COMMIT_TRIES: Final = 8
"""Lost races in a row before the messages wait for a redelivery."""

MISSING_TRIES: Final = 10
"""Deliveries of an intent for a run that is not there before it goes to the dead letters: some minutes."""

INTENTS_PER_TICK: Final = 50
"""Intents that one tick takes: the header carries all that they change once more, and a write takes 100 rows."""

PAGED_INTENTS_PER_TICK: Final = 15
"""The same for a run with item scopes, where each intent may touch pages of its own.

Neither is fewer than a batch holds whose commits and sends are no single transaction (10 on AWS): the redelivery of
part of such a batch must always meet the tick that it belongs to.
"""

LATE_COMMITS: Final = 5
"""How many commits before the last one are searched for a redelivered intent: in between only those come that a

coordinator makes which has outlived its messages."""

FIRST_RETRY_MS: Final = 200
MAX_RETRY_MS: Final = 60_000


class Handled(msgspec.Struct):
    """What became of a batch, by receipt: to acknowledge, to retry after some ms, to bury with a reason."""

    done: list[str] = []
    later: list[tuple[str, int]] = []
    buried: list[tuple[str, str]] = []


class MissingRunError(LookupError):
    """There is no such run (yet)."""


class Coordinator:
    """Applies intents to runs. One batch of messages at a time per instance: it is not thread-safe.

    `batches` gets the messages that are about controls of many runs (`app.batches`).
    """

    def __init__(
        self,
        *,
        table: Table,
        committer: Committer,
        dispatcher: Dispatcher,
        stalls: Stalls,
        unit: Unit,
        faults: Faults,
        cached_runs: int = 0,
        batches: Callable[[Sequence[Intent]], None] | None = None,
    ) -> None:
        self._table = table
        self._committer = committer
        self._dispatcher = dispatcher
        self._stalls = stalls
        self._unit = unit
        self._faults = faults
        self._runs: Cache[str, RunState] = Cache(cached_runs)
        self._batches = batches

    def handle(self, messages: Sequence[Message], told: Sequence[Intent] = ()) -> Handled:
        """Process a batch; one run's failure never touches another's. The caller acknowledges what is `done`.

        `told` are intents that stand in no queue; they come behind the messages of their runs, and are sent if they
        cannot be applied now. When grouping everything in one `Unit.batch`, call `forget` if that batch fails:
        remembered states would be ahead of what is stored.
        """
        handled = Handled()
        groups, behind = _by_group(messages, handled), _by_run(told)
        for run_id in groups | behind:
            self._handle_group(run_id, groups.get(run_id, []), behind.get(run_id, []), handled)
        return handled

    def forget(self) -> None:
        """Drop all remembered run states."""
        self._runs.clear()

    def _handle_group(
        self, run_id: str, group: list[tuple[Message, Intent]], told: list[Intent], handled: Handled
    ) -> None:
        receipts = [message.receipt for message, _ in group]
        intents = [*(intent for _, intent in group), *told]
        receives = max((message.receives for message, _ in group), default=1)
        try:
            with self._unit.part():
                self._advance(run_id, intents, again=receives > 1)
        except UnavailableError:
            self._runs.drop(run_id)
            handled.later.extend((receipt, retry_after_ms(receives)) for receipt in receipts)
            self._dispatcher.intend(told)
        except MissingRunError as missing:
            self._give_up_or_wait(receipts, receives, str(missing), handled)
            self._dispatcher.intend(told)
        except Exception:
            # Nobody knows what state a half-done pass left in memory; the stored one is sound.
            self._runs.drop(run_id)
            raise
        else:
            self._faults.at("coordinator.before_ack")
            handled.done.extend(receipts)

    def _give_up_or_wait(self, receipts: list[str], receives: int, reason: str, handled: Handled) -> None:
        if receives >= MISSING_TRIES:
            handled.buried.extend((receipt, reason) for receipt in receipts)
        else:
            handled.later.extend((receipt, retry_after_ms(receives)) for receipt in receipts)

    def _advance(self, run_id: str, intents: list[Intent], *, again: bool) -> None:
        """One tick for these intents, anew with the winner's state after a lost race. `again`: some are redelivered."""
        if self._batches is not None and intents[0].kind is IntentKind.BATCH:
            self._batches(intents)
            return
        remembered = self._runs.get(run_id)
        if remembered is not None and not again and self._from_memory(remembered, intents):
            return
        for lost in range(COMMIT_TRIES):
            if self._from_table(run_id, intents, again=again, lost=lost > 0):
                return
        raise UnavailableError(f"lost {COMMIT_TRIES} races in a row for run {run_id}")

    def _from_memory(self, state: RunState, intents: list[Intent]) -> bool:
        """Whether a commit upon the remembered state succeeded. It may be old, so it never justifies doing nothing."""
        self._runs.drop(state.run_id)
        try:
            return self._tick(state, intents, again=False) is Outcome.COMMITTED
        except (EngineFaultError, StaleRunError):
            return False

    def _from_table(self, run_id: str, intents: list[Intent], *, again: bool, lost: bool) -> bool:
        """Whether the intents were dealt with; False after a lost race."""
        item = self._table.get(run_pk(run_id), HEAD)
        if item is None or is_expiring(item):
            raise MissingRunError(f"run {run_id} does not exist")
        if is_stalled(item):
            return self._stalls.take(item, intents)
        try:
            state = self._committer.read(item)
            if lost or again:
                self._make_up(state, intents, lost=lost)
            return self._tick(state, intents, again=again) is not Outcome.LOST
        except StaleRunError:
            return False
        except (msgspec.DecodeError, msgspec.ValidationError) as fault:
            return self._stalls.begin(item, intents, f"the stored state cannot be read: {fault}")
        except EngineFaultError as fault:
            return self._stalls.begin(item, intents, str(fault))

    def _make_up(self, state: RunState, intents: list[Intent], *, lost: bool) -> None:
        """Send what others may have left unsent, before the next commit overwrites it.

        That of the winner of a lost race; and what commits had to tell that applied some of these intents before the
        last one. Such a commit was overwritten by a coordinator that outlived its messages: it knew nothing of them.
        """
        graph = self._committer.graph(state)
        if lost:
            self._dispatcher.send(graph, state, state.last.commands)
        unknown = {intent.id for intent in intents}.difference(state.last.applied)
        rows = recent_history(self._table, state.run_id, LATE_COMMITS) if unknown else ()
        for row in rows:
            if not unknown.isdisjoint(row.applied):
                self._dispatcher.send(graph, state, tuple(telling(row.seq, row.transitions)))

    def _tick(self, state: RunState, intents: list[Intent], *, again: bool) -> Outcome:
        """All intents in one tick if they are few, else in several, each committed and sent before the next.

        A nudge that was applied and is delivered for the first time is a copy, left by a send that was repeated. To
        answer it would send the next nudge once more, and so on for as long as there is work.
        """
        if not again:
            known = state.last.applied
            intents = [intent for intent in intents if intent.kind is not IntentKind.NUDGE or intent.id not in known]
        if not intents:
            return Outcome.NOTHING
        most = INTENTS_PER_TICK if state.tree is None else PAGED_INTENTS_PER_TICK
        if len(intents) <= most:
            return self._tick_once(state, intents)[0]
        applied = state.last.applied
        if any(intent.id in applied for intent in intents):
            self._dispatcher.send(self._committer.graph(state), state, state.last.commands)
        outcome = Outcome.NOTHING
        for start in range(0, len(intents), most):
            one, next_state = self._tick_once(state, intents[start : start + most])
            if one is Outcome.LOST or next_state is None:
                return Outcome.LOST
            state = next_state
            outcome = Outcome.COMMITTED if one is Outcome.COMMITTED else outcome
        return outcome

    def _tick_once(self, state: RunState, intents: list[Intent]) -> tuple[Outcome, RunState | None]:
        graph = self._committer.graph(state)
        applied = set(state.last.applied)
        new = [intent for intent in intents if intent.id not in applied]
        fresh = self._unanswered(state.run_id, new)
        if len(new) < len(intents) or fresh != new:
            # These were dealt with before: so the last commit may not have been followed by its sends, which must go
            # out before they are overwritten.
            self._dispatcher.send(graph, state, state.last.commands)
        if not fresh:
            return Outcome.NOTHING, state
        done = self._committer.commit(graph, state, fresh, tuple(intent.id for intent in intents))
        if done.state is not None:
            self._dispatcher.send(graph, done.state, done.commands, fresh=done.outcome is Outcome.NOTHING)
            self._faults.at("coordinator.after_send")
        if done.state is not None and done.outcome is Outcome.COMMITTED:
            let_go(done.state)
            self._runs.put(done.state.run_id, done.state)
        return done.outcome, done.state

    def _unanswered(self, run_id: str, intents: list[Intent]) -> list[Intent]:
        """The intents, with repeats of answered requests marked: they are audited and never applied, however late."""
        asked = [intent for intent in intents if intent.kind in OPERATOR_KINDS]
        if not asked:
            return intents
        keys = [(run_pk(run_id), request_sk(intent.request_id)) for intent in asked]
        rows = self._table.batch_get(keys)
        answered = {sk: read_outcome(row).request_hash for (_, sk), row in rows.items()}
        kept: list[Intent] = []
        for intent in intents:
            sk = request_sk(intent.request_id)
            if intent.kind in OPERATOR_KINDS and sk in answered:
                kept.append(_repeat(intent, same=answered[sk] == intent.request_hash))
                continue
            if intent.kind in OPERATOR_KINDS:
                answered[sk] = intent.request_hash
            kept.append(intent)
        return kept


def _repeat(intent: Intent, *, same: bool) -> Intent:
    """The intent as one that only leaves an audit entry: the outcome of its request is stored already."""
    if same:
        error = StepError(DUPLICATE, f"the request {intent.request_id} was answered before")
    else:
        error = StepError(REUSED, f"the request id {intent.request_id} was used for something else")
    return msgspec.structs.replace(intent, error=error)


def retry_after_ms(receives: int) -> int:
    """Milliseconds until the next delivery after the `receives`-th failed one."""
    return int(min(MAX_RETRY_MS, FIRST_RETRY_MS * 2 ** min(receives - 1, 12)))


def _by_group(messages: Sequence[Message], handled: Handled) -> dict[str, list[tuple[Message, Intent]]]:
    groups: dict[str, list[tuple[Message, Intent]]] = {}
    for message in messages:
        try:
            intent = _decode(message.body)
        except (msgspec.DecodeError, msgspec.ValidationError) as fault:
            handled.buried.append((message.receipt, f"not an intent: {fault}"))
            continue
        groups.setdefault(intent.run_id, []).append((message, intent))
    return groups


def _by_run(intents: Sequence[Intent]) -> dict[str, list[Intent]]:
    runs: dict[str, list[Intent]] = {}
    for intent in intents:
        runs.setdefault(intent.run_id, []).append(intent)
    return runs


_decode = msgspec.json.Decoder(Intent).decode
