"""Digests whose leaders and followers end otherwise, are paused, redriven, forked or run out of time."""

from __future__ import annotations

import msgspec
import pytest
from tests.simulation.family import Family, sub
from tests.unit.waits.gates import Gates, definition, note
from tests.unit.waits.mail import MINUTE, Mail, sound

from ductor.app.node_controls import NodeRequest
from ductor.app.presenting import waiting_on
from ductor.model import transition as tr
from ductor.model.definition import Step
from ductor.model.enums import RunStatus, StepType
from ductor.model.errors import RefusedError
from ductor.testing.digests import ARRIVAL
from ductor.testing.invariants import violations


@pytest.mark.parametrize(("operation", "status"), [("cancel", "cancelled"), ("terminate", "terminated")])
def test_the_oldest_follower_leads_when_the_leader_ends(operation: str, status: str) -> None:
    mail = Mail()
    first, second, third = (mail.arrive(n) for n in (1, 2, 3))
    mail.end(first, operation)
    mail.wait(MINUTE)

    assert mail.status(first) == status
    assert mail.batch(second) == [2, 3]
    assert mail.merged_into(third) == second
    assert mail.rows() == []
    sound(mail)


def test_a_leader_that_continues_as_new_hands_the_lead_on_and_joins_again() -> None:
    mail = Mail()
    first, second = mail.arrive(1), mail.arrive(2)
    mail.continue_as_new(first, "continueAsNew", "b")
    mail.settle()
    mail.wait(MINUTE)

    successor = mail.state(first).successor
    assert successor is not None
    assert mail.batch(second) == [2, 1]
    assert mail.merged_into(successor.run_id) == second


@pytest.mark.parametrize("operation", ["cancel", "terminate"])
def test_a_follower_that_ends_takes_its_arrival_with_it(operation: str) -> None:
    mail = Mail(max_wait="1m", max_count=3)
    first, second = mail.arrive(1), mail.arrive(2)
    mail.end(second, operation)
    third = mail.arrive(3)
    assert mail.status(first) == "waiting"
    fourth = mail.arrive(4)

    assert mail.batch(first) == [1, 3, 4]
    assert mail.merged_into(third) == mail.merged_into(fourth) == first
    assert mail.rows() == []
    sound(mail)


def test_a_digest_that_all_have_left_is_forgotten() -> None:
    mail = Mail()
    for run_id in (mail.arrive(1), mail.arrive(2)):
        mail.end(run_id, "cancel")

    assert mail.rows() == []
    mail.wait(MINUTE // 2)
    late = mail.arrive(3)
    mail.wait(MINUTE // 2)
    assert mail.status(late) == "waiting"


def test_a_paused_leader_hands_the_lead_on_and_is_merged_when_it_is_resumed() -> None:
    mail = Mail()
    first, second = mail.arrive(1), mail.arrive(2)
    mail.end(first, "pause")
    mail.wait(MINUTE)

    assert mail.batch(second) == [1, 2]
    assert mail.status(first) == "paused"
    mail.end(first, "resume")
    assert mail.merged_into(first) == second
    sound(mail)


def test_a_paused_leader_without_followers_leads_again_when_it_is_resumed() -> None:
    mail = Mail()
    first = mail.arrive(1)
    mail.end(first, "pause")
    mail.wait(2 * MINUTE)
    assert mail.status(first) == "paused"
    mail.end(first, "resume")

    assert mail.batch(first) == [1]


def test_who_joins_while_all_are_paused_leads() -> None:
    mail = Mail()
    first, second = mail.arrive(1), mail.arrive(2)
    mail.end(second, "pause")
    mail.end(first, "pause")
    third = mail.arrive(3)
    mail.wait(MINUTE)

    assert mail.batch(third) == [1, 2, 3]
    for run_id in (first, second):
        mail.end(run_id, "resume")
        assert mail.merged_into(run_id) == third
    sound(mail)


def test_the_other_branches_of_a_follower_are_cancelled() -> None:
    world = Gates()
    step = {"ref": "all", "type": "digest", "args": {"digest_key": "k", "window": "1m"}}
    hold = {"ref": "hold", "type": "wait", "args": {"duration": "2h"}}
    definition_id = world.publish(definition(step, hold))
    first, second = world.trigger(definition_id, {}), world.trigger(definition_id, {})
    world.settle()
    world.wait(MINUTE)

    assert world.statuses(first) == {"all": "completed", "hold": "waiting"}
    assert world.status(second) == "merged"
    assert world.statuses(second) == {"all": "cancelled", "hold": "cancelled"}


def test_a_redriven_run_joins_anew() -> None:
    world = Gates()
    step = {"ref": "all", "type": "digest", "args": {"digest_key": "k", "window": "1m", "arrival": "${{ RUN.id }}"}}
    boom = {"ref": "boom", "type": "action", "action": "double.fail_n", "args": {"n": 1, "v": 1}}
    run_id = world.trigger(world.publish(definition(step, boom)), {})
    world.settle()
    assert world.status(run_id) == "failed"

    world.control(run_id, "redrive", "r")
    world.settle()
    world.wait(MINUTE)

    assert world.status(run_id) == "completed"
    assert world.output(run_id, "all") == {"arrivals": [run_id], "count": 1}


def test_a_fork_after_the_digest_keeps_the_batch_and_one_before_joins_anew() -> None:
    mail = Mail()
    first, second = mail.arrive(1), mail.arrive(2)
    mail.wait(MINUTE)
    seqs = [number for number, step in enumerate(mail.history(first), 1) if isinstance(step, tr.NodeCompleted)]

    after, before = mail.reset(first, seqs[0], "after"), mail.reset(first, 0, "before")
    mail.settle()
    mail.wait(MINUTE)

    assert mail.batch(after) == [1, 2]
    assert mail.batch(before) == [1]
    assert mail.merged_into(second) == first
    sound(mail)


def test_a_step_that_waits_in_a_digest_is_not_reset_by_itself() -> None:
    mail = Mail()
    run_id = mail.arrive(1)
    mail.operations.nodes.send(mail.caller, run_id, "all", "reset", NodeRequest(request_id="r", reason=""))
    mail.settle()

    assert [(told.outcome, told.code) for told in mail.audit(run_id)] == [("rejected", "NOT_RESETTABLE")]


def test_a_merged_run_can_no_longer_be_cancelled() -> None:
    mail = Mail()
    _, second = mail.arrive(1), mail.arrive(2)
    mail.wait(MINUTE)

    with pytest.raises(RefusedError) as refused:
        mail.control(second, "cancel", "late")
    assert refused.value.error_code.value == "FAILED_PRECONDITION"


def test_a_run_that_is_being_merged_is_not_cancelled_any_more() -> None:
    """Its arrival is taken; until its last attempt has ended it is still on its way."""
    world = Gates()
    step = {"ref": "all", "type": "digest", "args": {"digest_key": "k", "window": "1m", "arrival": ARRIVAL}}
    slow = {"ref": "slow", "type": "action", "action": "double.slow", "args": {"v": 1, "ms": 120_000}}
    definition_id = world.publish(definition(step, slow))
    first, second = (world.trigger(definition_id, {"n": n}) for n in (1, 2))
    world.settle()
    for _ in range(12):
        world.clock.advance(MINUTE // 12)
        for worker in world.workers:
            worker.worker.renew([one.claimed for one in worker.running])
    world.timer.step()
    while world.coordinators[0].deliver(10):
        pass
    assert world.state(second).ending is RunStatus.MERGED
    world.control(second, "cancel", "late")
    world.coordinators[0].deliver(10)

    assert [(one.outcome, one.code) for one in world.audit(second)] == [("rejected", "ALREADY_MERGED")]
    assert world.state(second).merged_into == first


def test_a_batch_that_the_leader_cannot_use_goes_to_the_next() -> None:
    """An edge condition of the leader cannot be evaluated: it fails, and nothing of what the others brought is lost."""
    world = Gates()
    step = {"ref": "all", "type": "digest", "args": {"digest_key": "k", "window": "1m", "arrival": "${{ RUN.id }}"}}
    condition = 'TRIGGER.payload.good && STEPS["all"].status == "completed"'
    document = definition(step, note("mail"), edges=(("all", "mail", "success", condition),))
    definition_id = world.publish(document)
    first = world.trigger(definition_id, {})
    world.settle()
    second, third = (world.trigger(definition_id, {"good": True}) for _ in range(2))
    world.settle()
    world.wait(MINUTE)

    assert [world.status(run_id) for run_id in (first, second, third)] == ["failed", "completed", "merged"]
    assert world.output(second, "all")["arrivals"] == [second, third]


def test_what_is_waited_for_is_shown() -> None:
    mail = Mail()
    first, second = mail.arrive(1), mail.arrive(2)

    def shown(run_id: str) -> tuple[str, str]:
        graph, state = mail.graph(run_id), mail.state(run_id)
        waits = waiting_on("all", graph.by_ref["all"].step, state.root.nodes["all"])
        assert waits is not None
        return waits.kind, waits.detail

    assert shown(first) == ("digest", "step all: the close of digest k, which it leads")
    assert shown(second) == ("digest", "step all: the close of digest k, which another run leads")


@pytest.mark.parametrize("limit", [30_000, 0])
def test_a_run_whose_time_is_up_takes_its_arrival_with_it(limit: int) -> None:
    world = Gates()
    step = {"ref": "all", "type": "digest", "args": {"digest_key": "k", "window": "1m", "arrival": ARRIVAL}}
    definition_id = world.publish(msgspec.structs.replace(definition(step), run_timeout_ms=limit))
    first = world.trigger(definition_id, {"n": 1})
    world.settle()
    world.wait(20_000)
    second = world.trigger(definition_id, {"n": 2})
    world.settle()
    world.wait(10_000)
    world.wait(20_000)
    world.wait(10_000)

    assert world.status(first) == ("timed_out" if limit else "completed")
    assert world.status(second) == ("timed_out" if limit else "merged")
    assert violations(world, final=True) == []


def test_a_leader_that_loses_a_race_hands_the_lead_on() -> None:
    world = Gates()
    step = {"ref": "all", "type": "digest", "args": {"digest_key": "k", "window": "1m", "arrival": ARRIVAL}}
    nap = {"ref": "nap", "type": "wait", "args": {"duration_expr": "TRIGGER.payload.patience"}}
    win = {"ref": "win", "type": "race", "args": {}}
    definition_id = world.publish(definition(step, nap, win, edges=(("all", "win"), ("nap", "win"))))
    first, second = (world.trigger(definition_id, {"n": n, "patience": ms}) for n, ms in ((1, 30_000), (2, 90_000)))
    world.settle()
    world.wait(30_000)
    world.wait(30_000)

    assert world.output(first, "win")["winner"] == "nap"
    assert [each["run"] for each in world.output(second, "win")["output"]["arrivals"]] == [second]
    assert violations(world, final=True) == []


def test_a_merged_child_has_succeeded_with_the_name_of_its_leader() -> None:
    family = Family()
    digest = Step(ref="all", type=StepType.DIGEST, args={"digest_key": "k", "window": "1m", "arrival": ARRIVAL})
    family.add("leaf", digest)
    family.add("root", sub("one", "leaf", input={"n": 1}), sub("two", "leaf", input={"n": 2}), chain=False)
    family.start("root")
    family.rest()

    leader, merged = family.runs("leaf")
    assert [leader.status.value, merged.status.value] == ["completed", "merged"]
    assert family.world.output(family.root, "two") == {"merged_into": leader.run_id}
    assert family.state().status.value == "completed"
