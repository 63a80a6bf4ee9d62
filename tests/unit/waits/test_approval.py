"""Approvals: who decides, what each outcome takes, deadlines, and decisions that come twice, late or too early."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.app.refusal import refused
from tests.unit.waits.gates import Gates, note, person

from ductor.app.decisions import ErrorGiven, Resolve, Verdict
from ductor.model.errors import ErrorCode
from ductor.model.intent import Intent, IntentKind
from ductor.model.json import encode
from ductor.ports import Outgoing
from ductor.testing.invariants import violations

OPERATOR = person("operator")
ALL = (("gate", "yes", "approved"), ("gate", "no", "rejected"), ("gate", "any", "done"))


@pytest.fixture
def world() -> Gates:
    return Gates()


def gate(**args: Any) -> dict[str, Any]:
    audience = args.pop("audience", {"roles": ["operator"]})
    return {"ref": "gate", "type": "approval", "action": "approval", "args": {"audience": audience, **args}}


def opened(world: Gates, edges: tuple[tuple[str, str, str], ...] = ALL, **args: Any) -> str:
    targets = [note(target) for target in ("yes", "no", "any") if any(target == edge[1] for edge in edges)]
    return world.started(gate(**args), *targets, edges=edges)


def approve(world: Gates, run_id: str, request_id: str = "a", **fields: Any) -> None:
    world.decisions.approve(OPERATOR, run_id, "gate", Verdict(request_id=request_id, **fields))
    world.settle()


def reject(world: Gates, run_id: str, request_id: str = "r") -> None:
    world.decisions.reject(OPERATOR, run_id, "gate", Verdict(request_id=request_id))
    world.settle()


def test_the_gate_waits_without_end_and_nothing_behind_it_starts(world: Gates) -> None:
    run_id = opened(world)
    world.wait(400 * 86_400_000)
    assert world.statuses(run_id) == {"gate": "waiting", "yes": "pending", "no": "pending", "any": "pending"}
    assert violations(world) == []


def test_an_approval_takes_approved_and_done_and_keeps_what_was_said(world: Gates) -> None:
    run_id = opened(world)
    approve(world, run_id, approver_id="ada", comment="fine", payload={"limit": 5})
    assert world.statuses(run_id) == {"gate": "completed", "yes": "completed", "no": "skipped", "any": "completed"}
    output = world.output(run_id, "gate")
    assert output.pop("decided_at").endswith("Z")
    assert output == {
        "decision": "approved",
        "approver_id": "ada",
        "comment": "fine",
        "payload": {"limit": 5},
        "decided_by": OPERATOR.key_id,
    }


def test_a_rejection_takes_rejected_and_done(world: Gates) -> None:
    run_id = opened(world)
    reject(world, run_id)
    assert world.statuses(run_id) == {"gate": "completed", "yes": "skipped", "no": "completed", "any": "completed"}
    assert world.status(run_id) == "completed"


def test_a_rejection_that_no_edge_takes_fails_the_run_and_keeps_the_decision(world: Gates) -> None:
    run_id = opened(world, (("gate", "yes", "approved"),))
    reject(world, run_id)
    state = world.state(run_id)
    assert (world.status(run_id), state.error and state.error.code) == ("failed", "APPROVAL_REJECTED")
    assert world.output(run_id, "gate")["decision"] == "rejected"
    assert "yes" not in state.root.nodes


@pytest.mark.parametrize(
    ("on_timeout", "edges", "gate_status", "taken", "run"),
    [
        ("fail", ALL, "failed", {"any"}, "completed"),
        ("fail", ALL[:2], "failed", set(), "failed"),
        ("approve", ALL, "completed", {"yes", "any"}, "completed"),
        ("skip", ALL, "skipped", {"any"}, "completed"),
        ("skip", ALL[:2], "skipped", set(), "completed"),
    ],
)
def test_a_passed_deadline(
    world: Gates, on_timeout: str, edges: Any, gate_status: str, taken: set[str], run: str
) -> None:
    run_id = opened(world, edges, timeout_ms=3_000, on_timeout=on_timeout)
    world.wait(2_999)
    assert world.statuses(run_id)["gate"] == "waiting"
    world.wait(1)
    statuses = world.statuses(run_id)
    assert statuses.pop("gate") == gate_status
    assert {ref for ref, status in statuses.items() if status == "completed"} == taken
    assert world.status(run_id) == run
    assert violations(world) == []


def test_a_passed_deadline_fails_by_default_and_says_so(world: Gates) -> None:
    run_id = opened(world, ALL[:1], timeout_ms=3_000)
    world.wait(3_000)
    error = world.state(run_id).error
    assert error is not None
    assert error.code == "APPROVAL_TIMEOUT"


def test_an_approval_by_deadline_names_the_deadline(world: Gates) -> None:
    run_id = opened(world, timeout_ms=3_000, on_timeout="approve")
    world.wait(3_000)
    output = world.output(run_id, "gate")
    assert (output["decision"], output["decided_by"]) == ("approved", "timeout")


@pytest.mark.parametrize("on_timeout", ["fail", "approve", "skip"])
def test_a_stale_deadline_never_undoes_a_decision(world: Gates, on_timeout: str) -> None:
    edges = (("gate", "slow", "approved"), ("gate", "any", "done"))
    slow = {"ref": "slow", "type": "wait", "args": {"duration": "6s"}}
    run_id = world.started(gate(timeout_ms=3_000, on_timeout=on_timeout), slow, note("any"), edges=edges)
    world.wait(1_000)
    approve(world, run_id, payload={"keep": "me"})
    world.wait(2_000)
    world.wait(10_000)
    assert world.status(run_id) == "completed"
    assert world.output(run_id, "gate")["payload"] == {"keep": "me"}


@pytest.mark.parametrize("at", [2_999, 3_000, 3_001])
def test_at_the_deadline_there_is_exactly_one_outcome(world: Gates, at: int) -> None:
    run_id = opened(world, timeout_ms=3_000, on_timeout="fail")
    world.clock.advance(at)
    world.decisions.approve(OPERATOR, run_id, "gate", Verdict(request_id="a"))
    world.settle()
    world.wait(10_000)
    statuses = world.statuses(run_id)
    assert (statuses["gate"], statuses["yes"]) in {("completed", "completed"), ("failed", "skipped")}
    assert violations(world, final=True) == []


def test_a_deadline_that_passes_while_paused_is_applied_on_resume(world: Gates) -> None:
    run_id = opened(world, timeout_ms=3_000, on_timeout="skip")
    world.control(run_id, "pause", "p")
    world.wait(5_000)
    assert world.statuses(run_id)["gate"] == "waiting"
    world.control(run_id, "resume", "q")
    world.settle()
    assert world.statuses(run_id)["gate"] == "skipped"


def test_of_many_decisions_the_first_wins_and_every_other_is_audited(world: Gates) -> None:
    run_id = opened(world)
    for number in range(20):
        send = world.decisions.approve if number % 2 else world.decisions.reject
        send(OPERATOR, run_id, "gate", Verdict(request_id=f"d{number}", payload=number))
    world.settle()
    for number in range(20):
        send = world.decisions.approve if number % 2 else world.decisions.reject
        send(OPERATOR, run_id, "gate", Verdict(request_id=f"d{number}", payload=number))
        send(OPERATOR, run_id, "gate", Verdict(request_id=f"again{number}"))
    world.settle()
    audit = world.audit(run_id)
    assert [(entry.outcome, entry.code) for entry in audit[:1]] == [("applied", "")]
    assert {(entry.outcome, entry.code) for entry in audit[1:]} == {("rejected", "ALREADY_DECIDED")}
    assert len(audit) == 40
    output = world.output(run_id, "gate")
    assert (output["decision"], output["payload"]) == ("rejected", 0)
    assert world.statuses(run_id) == {"gate": "completed", "yes": "skipped", "no": "completed", "any": "completed"}


def test_a_late_decision_is_accepted_and_audited_also_after_the_end(world: Gates) -> None:
    run_id = opened(world)
    approve(world, run_id)
    assert world.status(run_id) == "completed"
    reject(world, run_id, "late")
    assert world.audit(run_id)[-1].code == "ALREADY_DECIDED"
    assert world.statuses(run_id)["no"] == "skipped"


def test_a_request_id_stands_for_one_decision(world: Gates) -> None:
    run_id = opened(world)
    approve(world, run_id, "same", payload=1)
    approve(world, run_id, "same", payload=1)
    assert len(world.audit(run_id)) == 1
    with refused(ErrorCode.FAILED_PRECONDITION, "REQUEST_ID_REUSED"):
        approve(world, run_id, "same", payload=2)


@pytest.mark.parametrize(
    ("audience", "roles", "user", "admitted"),
    [
        ({"roles": ["operator", "cfo"]}, ["cfo"], "", True),
        ({"roles": ["operator", "cfo"]}, ["clerk"], "", False),
        ({"roles": ["cfo"], "users": ["ada"]}, [], "ada", True),
        ({"users": ["ada"]}, ["ada"], "", False),
        ({"users": ["ada"]}, [], "bob", False),
        ({"match_mode": "all", "roles": ["operator", "cfo"]}, ["operator"], "", False),
        ({"match_mode": "all", "roles": ["operator", "cfo"]}, ["operator", "cfo", "x"], "", True),
        ({"match_mode": "all", "roles": ["cfo"], "users": ["ada"]}, ["cfo"], "bob", False),
        ({"match_mode": "all", "roles": ["cfo"], "users": ["ada"]}, ["cfo"], "ada", True),
    ],
)
def test_the_audience(world: Gates, audience: Any, roles: list[str], user: str, admitted: bool) -> None:
    run_id = opened(world, audience=audience)
    caller = person(*roles, user=user)
    if admitted:
        world.decisions.approve(caller, run_id, "gate", Verdict(request_id="a"))
        world.settle()
        assert world.statuses(run_id)["gate"] == "completed"
    else:
        with refused(ErrorCode.PERMISSION_DENIED, "AUDIENCE_MISMATCH"):
            world.decisions.approve(caller, run_id, "gate", Verdict(request_id="a"))
        world.settle()
        assert world.statuses(run_id) == {"gate": "waiting", "yes": "pending", "no": "pending", "any": "pending"}


def test_the_coordinator_checks_the_audience_again(world: Gates) -> None:
    run_id = opened(world)
    intent = Intent(
        id="x", run_id=run_id, kind=IntentKind.APPROVE, request_id="x", node="gate", body={"roles": ["clerk"]}
    )
    world.intents.send([Outgoing(encode(intent), group=run_id, dedup_id="x")])
    world.settle()
    assert [(entry.outcome, entry.code) for entry in world.audit(run_id)] == [("rejected", "AUDIENCE_MISMATCH")]
    assert world.statuses(run_id)["gate"] == "waiting"


def test_approver_role_grants_nothing(world: Gates) -> None:
    run_id = opened(world, approver_role="clerk")
    with refused(ErrorCode.PERMISSION_DENIED, "AUDIENCE_MISMATCH"):
        world.decisions.approve(person("clerk"), run_id, "gate", Verdict(request_id="a"))


def test_a_decision_before_the_gate_opens_is_refused(world: Gates) -> None:
    slow = {"ref": "slow", "type": "wait", "args": {"duration": "5s"}}
    run_id = world.started(slow, gate(), edges=(("slow", "gate", "success"),))
    with refused(ErrorCode.FAILED_PRECONDITION, "NOT_WAITING"):
        world.decisions.approve(OPERATOR, run_id, "gate", Verdict(request_id="a"))


def test_a_decision_on_a_gate_that_was_skipped_is_refused(world: Gates) -> None:
    skipped = {**gate(), "condition": "false"}
    run_id = world.started(skipped)
    with refused(ErrorCode.FAILED_PRECONDITION, "NOT_WAITING"):
        world.decisions.approve(OPERATOR, run_id, "gate", Verdict(request_id="a"))


def test_another_tenants_run_and_an_unknown_step_answer_alike(world: Gates) -> None:
    run_id = opened(world)
    for caller, run, node, code in (
        (person("operator", tenant="other"), run_id, "gate", "RUN_NOT_FOUND"),
        (OPERATOR, "nothing", "gate", "RUN_NOT_FOUND"),
        (OPERATOR, run_id, "nothing", "NODE_NOT_FOUND"),
    ):
        with refused(ErrorCode.NOT_FOUND, code):
            world.decisions.reject(caller, run, node, Verdict(request_id="a"))


def test_steps_of_other_types_are_not_approved_and_approvals_not_resolved(world: Gates) -> None:
    run_id = opened(world)
    with refused(ErrorCode.FAILED_PRECONDITION, "STEP_TYPE_WRONG"):
        world.decisions.approve(OPERATOR, run_id, "yes", Verdict(request_id="a"))
    with refused(ErrorCode.FAILED_PRECONDITION, "STEP_TYPE_WRONG"):
        world.decisions.resolve(OPERATOR, run_id, "yes", Resolve(request_id="a"))
    with refused(ErrorCode.FAILED_PRECONDITION, "APPROVAL_NOT_RESOLVABLE"):
        world.decisions.resolve(OPERATOR, run_id, "gate", Resolve(request_id="a"))


def test_a_cancelled_gate_stays_cancelled(world: Gates) -> None:
    run_id = opened(world, timeout_ms=3_000, on_timeout="approve")
    world.control(run_id, "cancel", "c")
    world.settle()
    approve(world, run_id)
    world.wait(5_000)
    assert (world.status(run_id), world.statuses(run_id)["gate"]) == ("cancelled", "cancelled")
    assert world.audit(run_id)[-1].outcome == "rejected"


def test_a_failed_gate_opens_again_when_redriven(world: Gates) -> None:
    run_id = opened(world, ALL[:1], timeout_ms=3_000)
    world.wait(3_000)
    world.control(run_id, "redrive", "again")
    world.settle()
    assert world.statuses(run_id)["gate"] == "waiting"
    approve(world, run_id)
    assert world.status(run_id) == "completed"


def test_a_decision_that_is_read_by_later_steps(world: Gates) -> None:
    after = {
        "ref": "after",
        "type": "dataflow",
        "args": {"operation": "project", "project": {"who": "STEPS.gate.output.approver_id"}},
    }
    run_id = world.started(gate(), after, edges=(("gate", "after", "approved"),))
    approve(world, run_id, approver_id="ada", comment="x" * 4_000)
    assert world.output(run_id, "after") == {"result": {"who": "ada"}}


@pytest.mark.parametrize("fields", [{"comment": "x" * 4_001}, {"approver_id": "x" * 257}, {"reason": "x" * 2_001}])
def test_texts_have_limits(world: Gates, fields: dict[str, str]) -> None:
    run_id = opened(world)
    with refused(ErrorCode.INVALID_ARGUMENT, "FIELD_INVALID"):
        world.decisions.approve(OPERATOR, run_id, "gate", Verdict(request_id="a", **fields))


def test_a_wait_is_resolved_by_hand(world: Gates) -> None:
    wait = {"ref": "w", "type": "wait", "args": {"duration": "5h"}}
    run_id = world.started(wait, note("n"), edges=(("w", "n", "success"),))
    world.decisions.resolve(OPERATOR, run_id, "w", Resolve(request_id="a", payload={"by": "hand"}))
    world.settle()
    assert world.output(run_id, "w") == {"by": "hand"}
    assert world.status(run_id) == "completed"


def test_a_wait_is_resolved_as_failed(world: Gates) -> None:
    wait = {"ref": "w", "type": "wait", "args": {"duration": "5h"}}
    run_id = world.started(wait, note("n"), edges=(("w", "n", "error"),))
    error = ErrorGiven(code="NO_STOCK", message="sold out")
    world.decisions.resolve(OPERATOR, run_id, "w", Resolve(request_id="a", error=error))
    world.settle()
    node = world.state(run_id).root.nodes["w"]
    assert (node.status.value, node.error and node.error.code) == ("failed", "NO_STOCK")
    assert world.status(run_id) == "completed"
