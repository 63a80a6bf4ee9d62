"""What must hold in a world whatever happened to it. Reads stores directly; never changes them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import msgspec

from ductor.app.ai_journal import Journal
from ductor.app.attempts import MAX_DELIVERIES
from ductor.app.headers import HISTORY_PREFIX, STALL, request_sk, run_pk
from ductor.engine.fold import fold
from ductor.engine.scopes import item_path
from ductor.model import transition as tr
from ductor.model.attempt import Attempt
from ductor.model.enums import NodeStatus, RunStatus, StepType
from ductor.model.run import HistoryRow, LastTick, NodeState, RunState
from ductor.testing.batches import batch_faults
from ductor.testing.bridges import bridge_faults
from ductor.testing.decided import pause_faults, promised
from ductor.testing.digests import digest_faults
from ductor.testing.lineage import unrelated
from ductor.testing.listed import unlisted
from ductor.testing.listening import unheard
from ductor.testing.models import talk_faults
from ductor.testing.oracle import Oracle, asks_people, faults_of, unwatched_of
from ductor.testing.world import World

_rows = msgspec.json.Decoder(HistoryRow)


def violations(world: World, *, final: bool = False) -> list[str]:
    """Every broken promise, as a sentence with the run's id. `final`: also that every run has ended."""
    found: list[str] = []
    for run_id in world.run_ids():
        found += [f"run {run_id}: {fault}" for fault in _of_run(world, run_id, final)]
    found += [*world.crowd.faults, *world.crowd.miscounted(world.table)]
    found += promised(world) if final else ()
    found += unrelated(world, final=final)
    found += unheard(world) if final else ()
    found += batch_faults(world) if final else ()
    found += digest_faults(world, final=final)
    return found


def _of_run(world: World, run_id: str, final: bool) -> Iterator[str]:
    state = world.state(run_id)
    rows = history_rows(world, state)
    oracle = Oracle(world.graph(run_id), state.origin)
    oracle.replay(rows)
    yield from oracle.faults
    yield from faults_of(state, unwatched_of(oracle.graph))
    if not oracle.faults:
        yield from _unfolded(world, state, rows)
    attempts = {(row.task.node, row.task.attempt): row for row in world.attempts(run_id)}
    yield from _effects(world, run_id, attempts)
    stopped = [claim for claim in world.ledger.claims if claim.run_id == run_id and claim.stopped]
    if stopped:
        yield f"attempts were handed out after they had been asked to stop: {stopped}"
    yield from _outputs(world, state)
    bridges = frozenset(node.ref for node in oracle.graph.nodes if node.step.type is StepType.BRIDGE)
    yield from bridge_faults(world.bridges, state, bridges, attempts, lambda payload: world.value(run_id, payload))
    stall = world.table.get(run_pk(run_id), STALL)
    if (stall is not None) != world.stalled(run_id):
        yield "the mark of a stall and its row do not go together"
    if stall is None or final:
        yield from _requests(world, run_id, oracle.requests)
    yield from pause_faults(world, run_id, rows)
    yield from talk_faults(world.ledger, Journal(world.table, world.payloads), run_id, asking_models(world, state))
    yield from unlisted(world.table, state)
    yield from _waits(world, state)
    yield from _drained(world, state, rows, attempts)
    if stall is not None and (final or not world.profile.worst.fault):
        yield f"is stalled: {stall.body.decode()}"
    if final and not state.status.terminal:
        yield f"is {state.status.value} at the end of all time"


def history_rows(world: World, state: RunState) -> list[HistoryRow]:
    """The stored rows and, as the last, the header's copy."""
    items = world.table.query(run_pk(state.run_id), prefix=HISTORY_PREFIX, limit=100_000).items
    rows = [row for item in items if (row := _rows.decode(item.body)).seq + len(row.transitions) - 1 <= state.seq]
    last = state.last
    if last.transitions and (not rows or rows[-1].seq <= last.seq):
        rows.append(HistoryRow(state.version, last.at, last.seq + 1, last.transitions, last.applied))
    return rows


def _unfolded(world: World, state: RunState, rows: list[HistoryRow]) -> Iterator[str]:
    """The stored state must be what its history says, but for what never enters the history."""
    folded = fold(world.graph(state.run_id), state.origin, rows)
    if not state.started_at and not state.status.terminal:
        folded.wake_at = state.wake_at  # the admission's own, which is no part of the history
    stored = msgspec.structs.replace(state, last=LastTick(), version=folded.version)
    if folded != stored:
        different = [name for name in RunState.__struct_fields__ if getattr(folded, name) != getattr(stored, name)]
        yield f"the history does not fold to the stored state: {', '.join(different)}"


def _effects(world: World, run_id: str, attempts: dict[tuple[str, int], Attempt]) -> Iterator[str]:
    counted = Counter((effect.node, effect.attempt) for effect in world.ledger.effects if effect.run_id == run_id)
    for key, count in counted.items():
        row = attempts.get(key)
        if row is None:
            yield f"attempt {key} had an effect and has no row"
        elif count > row.deliveries or row.deliveries - row.returned > MAX_DELIVERIES:
            yield f"attempt {key} had {count} effects in {row.deliveries} deliveries"


def _outputs(world: World, state: RunState) -> Iterator[str]:
    """What a completed action step shows was returned by an execution of that very attempt."""
    for ref, entry in nodes_of(state):
        step = world.graph(state.run_id).by_ref[ref.partition("@")[0]].step
        if entry.status is not NodeStatus.COMPLETED or step.type is not StepType.ACTION or entry.error is not None:
            continue
        if entry.foreign or (state.fork is not None and state.fork.foreign(ref)):
            continue
        returned = [
            effect.output
            for effect in world.ledger.effects
            if (effect.run_id, effect.node, effect.attempt) == (state.run_id, ref, entry.attempt)
        ]
        if not returned:
            yield f"{ref} completed without an effect"
        elif world.value(state.run_id, entry.output) not in returned:
            yield f"{ref} shows an output that none of its {len(returned)} executions returned"


def _requests(world: World, run_id: str, audited: list[str]) -> Iterator[str]:
    repeated = [request for request, count in Counter(audited).items() if count > 1]
    if repeated:
        yield f"requests {repeated} were answered more than once"
    for request_id, operation in world.ledger.requests[run_id].items():
        if world.table.get(run_pk(run_id), request_sk(request_id)) is None:
            yield f"the accepted {operation} {request_id} has no outcome"


def asking_models(world: World, state: RunState) -> Iterator[str]:
    """The nodes that talk to models."""
    steps = world.graph(state.run_id).by_ref
    for node, entry in nodes_of(state):
        if entry.attempt and steps[node.partition("@")[0]].step.type in (StepType.AI_ACTION, StepType.AI_AGENT):
            yield node


def _waits(world: World, state: RunState) -> Iterator[str]:
    """A run that has not ended waits for something, and it shows."""
    if state.status.terminal or state.status is RunStatus.PAUSED or world.stalled(state.run_id):
        return
    people = asks_people(world.graph(state.run_id))
    asked = any(
        ref.partition("@")[0] in people and entry.status is NodeStatus.WAITING for ref, entry in nodes_of(state)
    )
    held = any(entry.status is NodeStatus.PAUSED for _, entry in nodes_of(state))
    if not state.wake_at and not asked and not held:
        yield f"is {state.status.value} and waits for nothing"


def _drained(
    world: World, state: RunState, rows: list[HistoryRow], attempts: dict[tuple[str, int], Attempt]
) -> Iterator[str]:
    """No claim after the end, and no attempt left open, except where `terminate` does not wait for any."""
    ended_at = world.ledger.terminal_at.get(state.run_id)
    if not state.status.terminal or ended_at is None:
        return
    if state.status not in (RunStatus.TERMINATED, RunStatus.CONTINUED_AS_NEW):
        lost = {getattr(each, "node", "") for row in rows for each in row.transitions if _gave_up(each)}
        late = [
            (claim.node, claim.attempt)
            for claim in world.ledger.claims
            if claim.run_id == state.run_id and claim.number > ended_at and claim.node not in lost
        ]
        if late:
            yield f"attempts {late} were claimed after the run had ended"
    left = [key for key, row in attempts.items() if not row.status.ended]
    if left:
        yield f"attempts {left} are still open"
    unknown = [
        key
        for key in attempts
        if not any(_scheduled(transition, key) for row in rows for transition in row.transitions)
    ]
    if unknown:
        yield f"attempts {unknown} were never scheduled"


def _gave_up(transition: tr.Transition) -> bool:
    """A loser's attempt: nobody waits until it has stopped."""
    live = isinstance(transition, tr.NodeCancelled | tr.NodeReset) and transition.live
    return live or isinstance(transition, tr.AttemptAbandoned)


def nodes_of(state: RunState) -> Iterator[tuple[str, NodeState]]:
    """Every node of the run, those of items too, by id."""
    yield from state.root.nodes.items()
    for page in state.loaded.values():
        outer = page.scatter.partition("@")[2]
        for index, item in enumerate(page.items, page.first):
            for ref, entry in item.nodes.items():
                yield f"{ref}@{item_path(outer, index)}", entry


def _scheduled(transition: tr.Transition, key: tuple[str, int]) -> bool:
    return isinstance(transition, tr.NodeScheduled) and (transition.node, transition.attempt) == key
