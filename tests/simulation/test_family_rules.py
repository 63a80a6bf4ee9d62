"""Safety rules 12, 14 and 23, runs that belong together: each holds with its mechanism and breaks without it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import pytest
from tests.simulation.family import Family, act, boom, hold, nest, sub, undo
from tests.simulation.scene import held
from tests.simulation.test_continue import continuations

from ductor.app.reset import Resets
from ductor.app.signals import SignalRequest
from ductor.engine.context import TickContext
from ductor.model import transition as tr
from ductor.model.definition import Retry, Step
from ductor.model.enums import RunStatus, StepType
from ductor.model.errors import RefusedError
from ductor.model.intent import Intent, IntentKind
from ductor.model.lineage import COMPENSATION, child_run_id
from ductor.model.run import Fork, NodeState, RunState
from ductor.ports import Check
from ductor.steps.subworkflow import SubworkflowBehaviour
from ductor.testing.chaos import Crash

MINUTE = 60_000


def code_of(act: Callable[[], object]) -> str:
    """The code of the refusal; empty when it is done."""
    try:
        act()
    except RefusedError as refused:
        return refused.violations[0].code
    return ""


# Rule 12: what comes too late for a run that continued as new reaches its successor, under its own id


def moved(then: str) -> tuple[Family, str]:
    """A run that continues as new, with one more request on its way behind; and its successor."""
    family = Family()
    listening = Step(ref="ear", type=StepType.WAIT_EVENT, args={"event_name": "go", "correlation_key": "k"})
    family.add("loop", listening)
    family.start("loop")
    family.work()
    done = continuations(family).send(family.world.caller, family.root, "r1")
    if then == "signal":
        request = SignalRequest(request_id="late", name="go", payload={"v": 1})
        family.world.signals.signal(family.world.caller, family.root, request)
    else:
        family.world.control(family.root, then, "late")
    family.work()
    return family, done.new_run_id


@pytest.mark.parametrize(
    ("then", "status"),
    [("cancel", RunStatus.CANCELLED), ("terminate", RunStatus.TERMINATED), ("signal", RunStatus.COMPLETED)],
)
def test_rule_12_a_late_request_reaches_the_successor_under_its_id(then: str, status: RunStatus) -> None:
    def scenario() -> bool:
        family, successor = moved(then)
        history = family.world.history(successor)
        answered = [one for one in history if isinstance(one, tr.OperatorAudited) and one.request_id == "late"]
        return family.state(successor).status is status and [one.outcome for one in answered] == ["applied"]

    held(scenario, patch("ductor.engine.operating.FOLLOWS", frozenset()))


def the_parent_ends_while_its_child_moves() -> bool:
    """The parent is told before the child has moved, so that its news come to a run that has ended."""
    family = nest(2)
    family.work()
    child = family.one("level0").run_id
    done = continuations(family).send(family.world.caller, child, "r1")
    intents = family.world.intents
    (moves,) = intents.receive(1, visibility_ms=60_000)
    assert moves.group == child
    family.world.control(family.root, "cancel", "stop")
    family.world.coordinators[0].deliver(1)
    intents.retry([moves.receipt], delay_ms=0)
    family.work(10)
    return family.state(done.new_run_id).status is RunStatus.CANCELLED


def test_rule_12_the_end_of_a_parent_reaches_the_successor() -> None:
    def deaf(ctx: TickContext, intent: Intent, *rules: Any) -> Any:
        return () if ctx.state.status.terminal else original(ctx, intent, *rules)

    from ductor.engine.lineage import parent_closed as original

    held(the_parent_ends_while_its_child_moves, patch("ductor.engine.decide.parent_closed", deaf))


def the_end_of_an_attempt_that_was_given_up() -> bool:
    """The first child takes too long and is left alone; its end comes while the second attempt is on its way."""
    family = Family()
    family.add("leaf", Step(ref="nap", type=StepType.WAIT, args={"duration": "90s"}), output={"v": "${{ RUN.id }}"})
    step = sub("c", "leaf", parent_close_policy="abandon", timeout_ms=MINUTE, retry=Retry(max_attempts=3, backoff_ms=0))
    family.add("root", step)
    family.start("root")
    family.work()
    for _ in range(10):
        family.world.clock.advance(10_000)
        family.world.timer.step()
        family.work(10)
    first = child_run_id(family.root, "c", 1, 1)
    entry = family.state().root.nodes["c"]
    return family.state(first).status is RunStatus.COMPLETED and (entry.status.value, entry.attempt) == ("scheduled", 2)


def test_rule_12_the_end_of_a_child_is_matched_by_node_attempt_and_generation() -> None:
    def whoever_comes(entry: NodeState, intent: Intent) -> bool:
        return intent.status is not None and entry.status.value == "scheduled"

    held(the_end_of_an_attempt_that_was_given_up, patch("ductor.engine.decide._awaits", whoever_comes))


def test_rule_12_a_live_child_is_a_live_attempt_and_discarding_closes_it() -> None:
    def scenario() -> bool:
        family = nest(2)
        family.work()
        continuation = continuations(family)
        if code_of(lambda: continuation.send(family.world.caller, family.root, "r1")) != "LIVE_ATTEMPTS":
            return False
        continuation.send(family.world.caller, family.root, "r2", discard_pending=True)
        family.work()
        (child,) = [run for run in family.runs("level0") if run.origin.parent_run_id == family.root]
        return child.status is RunStatus.CANCELLED

    held(scenario, patch("ductor.app.successors.continue_refusal", lambda state, *, discard: None))


# Rule 14: an effect belongs to the run that executed it


def a_fork_that_fails_after_what_its_source_did() -> bool:
    """The source was cancelled, and keeps what it did; the fork keeps the result, fails, and must not undo it."""
    family = Family()
    family.add("job", act("a", compensation=undo("a", on="failure")), hold(), boom("b"))
    family.start("job")
    family.work()
    family.world.control(family.root, "cancel", "stop")
    family.work()
    after_a = [number for number, one in enumerate(family.world.history(family.root), 1) if _completed(one, "a")]
    fork = family.world.reset(family.root, after_a[0], "again")
    family.schedule.drain()
    assert family.state(fork).status is RunStatus.FAILED
    return not family.runs("job", COMPENSATION)


def _completed(transition: tr.Transition, ref: str) -> bool:
    return isinstance(transition, tr.NodeCompleted) and transition.node == ref


def test_rule_14_a_fork_does_not_undo_what_its_source_did() -> None:
    held(a_fork_that_fails_after_what_its_source_did, patch.object(Fork, "foreign", lambda self, node: False))


def failed_and_undone() -> tuple[Family, int]:
    """A run whose first step is undone, and the point after that step."""
    family = Family()
    family.add("job", act("a", compensation=undo("a")), boom("b"))
    family.start("job")
    family.work()
    assert family.state().status is RunStatus.FAILED
    history = family.world.history(family.root)
    return family, next(number for number, one in enumerate(history, 1) if _completed(one, "a"))


def refused(family: Family, seq: int) -> bool:
    """Whether a fork that would keep what is being undone is refused, and is not there."""
    code = code_of(lambda: family.world.reset(family.root, seq, "again"))
    return code == "COMPENSATED" and len(family.runs("job")) == 1


def test_rule_14_a_reset_keeps_nothing_whose_inverse_has_begun() -> None:
    def scenario() -> bool:
        return refused(*failed_and_undone())

    held(scenario, patch.object(Resets, "_undone", lambda self, state: set()))


def the_source_begins_to_undo_while_it_is_forked() -> bool:
    family = Family()
    family.add("job", act("a", compensation=undo("a")), hold())
    family.start("job")
    family.work()
    seq = next(number for number, one in enumerate(family.world.history(family.root), 1) if _completed(one, "a"))
    first = Resets._first

    def meanwhile(self: Resets, *drawn: Any) -> RunState:
        state = first(self, *drawn)
        if family.state().status is RunStatus.RUNNING:
            family.world.control(family.root, "cancel", "stop")
            family.work()
        return state

    with patch.object(Resets, "_first", meanwhile):
        return refused(family, seq)


def test_rule_14_a_fork_is_published_only_while_its_source_is_as_it_was_read() -> None:
    world_write = patch("ductor.app.reset.Check", lambda pk, sk, expect: Check(pk, sk))
    held(the_source_begins_to_undo_while_it_is_forked, world_write)


@pytest.mark.parametrize("passing", range(1, 6))
def test_rule_14_a_fork_shows_itself_only_when_it_is_whole(passing: int) -> None:
    family = Family()
    family.add("job", act("a", args={"v": "x" * 9_000}), act("b", args={"v": "y" * 9_000}))
    family.start("job")
    family.rest()
    seq, write, left = family.state().seq, family.world.table.write, [passing]

    def deadly(ops: Any) -> Any:
        left[0] -= 1
        if left[0] == 0:
            raise Crash("before a write")
        return write(ops)

    with patch.object(family.world.table, "write", deadly):
        try:
            family.world.reset(family.root, seq, "again")
        except Crash:
            assert len(family.runs("job")) == 1
    fork = family.world.reset(family.root, seq, "again")
    family.rest()
    assert len(family.runs("job")) == 2
    assert family.world.output(fork, "b") == family.world.output(family.root, "b")


# Rule 23: a child belongs to one attempt of one generation; who replaces it closes it


def a_failed_child_is_tried_again() -> bool:
    family = Family()
    family.add("leaf", boom("b"))
    family.add("root", sub("c", "leaf", retry=Retry(max_attempts=2, backoff_ms=0, jitter=0.0)))
    family.start("root")
    family.schedule.drain()
    return len(family.runs("leaf")) == 2


def test_rule_23_each_attempt_has_a_child_of_its_own() -> None:
    def one_for_all(run_id: str, node: str, attempt: int, generation: int) -> str:
        return child_run_id(run_id, node, 1, 1)

    held(a_failed_child_is_tried_again, patch("ductor.app.children.child_run_id", one_for_all))


def an_attempt_with_a_child_is_replaced() -> bool:
    family = Family()
    family.add("leaf", hold())
    family.add("root", sub("c", "leaf", timeout_ms=MINUTE, retry=Retry(max_attempts=2, backoff_ms=0, jitter=0.0)))
    family.start("root")
    family.work()
    family.world.clock.advance(MINUTE)
    family.world.timer.step()
    family.work()
    first, second = (family.state(child_run_id(family.root, "c", number, number)) for number in (1, 2))
    return (first.status, second.status) == (RunStatus.CANCELLED, RunStatus.RUNNING)


def test_rule_23_replacing_an_attempt_closes_its_child() -> None:
    held(an_attempt_with_a_child_is_replaced, patch.object(SubworkflowBehaviour, "commands", lambda *_: ()))


def a_child_is_redriven_whose_parent_has_gone_on() -> bool:
    family = Family()
    family.add("leaf", boom("b"))
    family.add("root", sub("c", "leaf"))
    family.start("root")
    family.rest()
    child = family.one("leaf").run_id
    code = code_of(lambda: family.world.control(child, "redrive", "again"))
    family.work()
    again = any(isinstance(one, tr.RunRedriven) for one in family.world.history(child))
    return code == "PARENT_NOT_WAITING" and not again


def test_rule_23_a_child_whose_parent_no_longer_waits_is_not_redriven() -> None:
    held(a_child_is_redriven_whose_parent_has_gone_on, patch("ductor.app.control.redrive_refusal", lambda state: None))


def test_rule_23_the_coordinator_refuses_it_too() -> None:
    family = Family()
    family.add("leaf", boom("b"))
    family.add("root", sub("c", "leaf"))
    family.start("root")
    family.rest()
    child = family.one("leaf").run_id
    with patch("ductor.app.control.redrive_refusal", lambda state: None):
        family.world.control(child, "redrive", "again")
    family.work()
    audited = [one for one in family.world.history(child) if isinstance(one, tr.OperatorAudited)]
    assert [(one.operation, one.code) for one in audited] == [(IntentKind.REDRIVE.value, "PARENT_NOT_WAITING")]
