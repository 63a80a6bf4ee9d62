"""What people see of runs."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest
from tests.unit.app.refusal import refused
from tests.unit.app.stored_runs import change, claim, record, start
from tests.unit.app.world import World

from ductor.app.headers import HEAD, STALL, Stall, history_sk, mark_stalled, run_pk
from ductor.app.run_filter import RunFilter
from ductor.app.views import WaitingOn
from ductor.expressions.redaction import redact
from ductor.model.attempt import AttemptStatus
from ductor.model.enums import NodeStatus, RunStatus
from ductor.model.errors import ErrorCode, RefusedError, StepError
from ductor.model.json import decode
from ductor.model.payload import BlobRef, Inline
from ductor.model.run import HistoryRow, NodeState
from ductor.model.transition import (
    NodeCompleted,
    NodeRetrying,
    NodeScheduled,
    OperatorAudited,
    RunEnded,
    RunStarted,
)
from ductor.ports import Item, Put


class TestSnapshot:
    def test_every_step_shows_and_untouched_ones_are_pending(self, world: World, run_id: str) -> None:
        snapshot = world.runs.snapshot(world.caller, run_id)
        assert (snapshot.run_id, snapshot.status, snapshot.transition_seq) == (run_id, "pending", 0)
        assert snapshot.db_record_version == 1
        assert list(snapshot.nodes) == ["shown", "hashed", "omitted", "later"]
        assert {node.status for node in snapshot.nodes.values()} == {"pending"}
        assert (snapshot.nodes["shown"].type, snapshot.nodes["shown"].title) == ("STEP_TYPE_ACTION", "Shown")
        assert snapshot.nodes["shown"].started_at is None

    def test_outputs_show_by_their_policy_as_json_text(self, world: World, run_id: str) -> None:
        value = {"card": "4111", "n": [1, True]}
        done = NodeState(status=NodeStatus.COMPLETED, output=Inline(value), started_at=5, finished_at=9)
        change(world, run_id, nodes={"shown": done, "hashed": done, "omitted": done})
        nodes = world.runs.snapshot(world.caller, run_id).nodes
        key = world.tenants.redaction_key(world.tenant)
        assert decode(nodes["shown"].latest_output_json or "") == value
        assert decode(nodes["hashed"].latest_output_json or "") == redact(value, "hashed", key)
        assert nodes["omitted"].latest_output_json is None
        assert (nodes["shown"].started_at, nodes["shown"].finished_at) == (5, 9)

    def test_values_of_every_size_show_and_those_over_8_kb_by_reference(self, world: World, run_id: str) -> None:
        for size, large in ((10, False), (5_000, False), (9_000, True)):
            output = world.payloads.keep(run_id, "x" * size)
            change(world, run_id, nodes={"shown": NodeState(status=NodeStatus.COMPLETED, output=output)})
            node = world.runs.snapshot(world.caller, run_id).nodes["shown"]
            assert node.latest_output_json == (None if large else f'"{"x" * size}"')
            expected = f"/api/v2/workflow-runs/{run_id}/nodes/shown/output" if large else None
            assert node.output_ref == expected
            assert world.runs.node_output(world.caller, run_id, "shown") == "x" * size

    def test_a_scheduled_node_runs_once_a_worker_has_it(self, world: World, run_id: str) -> None:
        change(
            world, run_id, status=RunStatus.RUNNING, nodes={"shown": NodeState(status=NodeStatus.SCHEDULED, attempt=2)}
        )
        assert world.runs.snapshot(world.caller, run_id).nodes["shown"].status == "scheduled"
        claim(world, run_id, "shown", 1, status=AttemptStatus.FAILED, started_at=3)
        assert world.runs.snapshot(world.caller, run_id).nodes["shown"].status == "scheduled"
        claim(world, run_id, "shown", 2, started_at=7)
        node = world.runs.snapshot(world.caller, run_id).nodes["shown"]
        assert (node.status, node.started_at, node.attempt) == ("running", 7, 2)

    def test_a_waiting_run_says_for_what(self, world: World, run_id: str) -> None:
        waiting = NodeState(status=NodeStatus.WAITING, entered_at=10, deadline=90)
        retrying = NodeState(
            status=NodeStatus.RETRYING, attempt=1, entered_at=20, deadline=60, error=StepError("BOOM", "it broke")
        )
        change(world, run_id, status=RunStatus.RUNNING, nodes={"later": waiting, "shown": retrying})
        snapshot = world.runs.snapshot(world.caller, run_id)
        assert snapshot.status == "waiting"
        timer = WaitingOn(kind="timer", detail="step later", since=10, deadline_at=90)
        retry = WaitingOn(kind="retry", detail="attempt 2 of step shown after BOOM", since=20, deadline_at=60)
        assert (snapshot.nodes["later"].waiting_on, snapshot.nodes["later"].deadline_at) == (timer, 90)
        assert (snapshot.nodes["shown"].waiting_on, snapshot.nodes["shown"].next_retry_at) == (retry, 60)
        assert snapshot.nodes["shown"].deadline_at is None
        assert snapshot.waiting_on == retry
        assert world.runs.summary(world.caller, run_id).waiting_on == retry

    def test_error_details_are_redacted_and_code_and_message_show(self, world: World, run_id: str) -> None:
        error = StepError("HTTP_500", "it broke", False, {"body": "secret"})
        failed = NodeState(status=NodeStatus.FAILED, error=error)
        change(world, run_id, nodes={"hashed": failed, "omitted": failed})
        nodes = world.runs.snapshot(world.caller, run_id).nodes
        shown = nodes["hashed"].error
        assert shown is not None
        assert (shown.code, shown.message, shown.retryable) == ("HTTP_500", "it broke", False)
        assert "secret" not in str(shown.details)
        assert nodes["omitted"].error is not None
        assert nodes["omitted"].error.details is None

    def test_the_context_has_the_strictest_policy_of_its_writers(self, world: World) -> None:
        steps = [
            {"ref": "a", "type": "action", "action": "core.echo", "redaction_policy": "none",
             "effects": {"context": {"open": "1", "both": "1"}}},
            {"ref": "b", "type": "action", "action": "core.echo", "effects": {"context": {"both": "2"}}},
        ]  # fmt: skip
        run_id = start(world, world.published({"family_slug": "context", "steps": steps}))
        change(world, run_id, context=Inline({"open": 1, "both": 2, "unknown": 3}))
        context = world.runs.snapshot(world.caller, run_id).context
        assert context["open"] == 1
        assert context["both"].startswith("sha256:")
        assert context["unknown"].startswith("sha256:")

    def test_steps_are_the_nodes_in_the_definitions_order(self, world: World, run_id: str) -> None:
        assert [node.node for node in world.runs.steps(world.caller, run_id)] == ["shown", "hashed", "omitted", "later"]


class TestStalled:
    def stall(self, world: World, run_id: str, body: bytes | None = None) -> None:
        item = world.table.get(run_pk(run_id), HEAD)
        assert item is not None
        marked = mark_stalled(item, 77)
        note = Item(pk=item.pk, sk=STALL, body=msgspec.json.encode(Stall("a bug", 77)))
        world.table.write([Put(msgspec.structs.replace(marked, body=body or item.body)), Put(note)])

    def test_a_stalled_run_says_why_and_since_when(self, world: World, run_id: str) -> None:
        self.stall(world, run_id)
        for view in (world.runs.snapshot(world.caller, run_id), world.runs.summary(world.caller, run_id)):
            assert view.stalled is not None
            assert (view.stalled.reason, view.stalled.since) == ("a bug", 77)
        (listed,) = world.runs.list_runs(world.caller, RunFilter(), None, None).items
        assert listed.stalled is not None

    def test_a_run_of_another_release_keeps_its_summary(self, world: World, run_id: str) -> None:
        origin = msgspec.to_builtins(world.header(run_id).origin)
        self.stall(world, run_id, msgspec.json.encode({"origin": origin, "status": "a status of the future"}))
        assert world.runs.summary(world.caller, run_id).run_id == run_id
        assert [run.run_id for run in world.runs.list_runs(world.caller, RunFilter(), None, None).items] == [run_id]
        with refused(ErrorCode.FAILED_PRECONDITION, "STATE_UNREADABLE"):
            world.runs.snapshot(world.caller, run_id)


class TestHistory:
    def test_the_headers_copy_closes_the_gap(self, world: World, run_id: str) -> None:
        record(
            world,
            run_id,
            (RunStarted(),),
            (NodeScheduled("shown", 1, 1),),
            (NodeCompleted("shown", Inline(1)), RunStarted()),
        )
        page = world.runs.events(world.caller, run_id, None, None)
        assert [(event.seq, event.type) for event in page.items] == [
            (1, "run_started"),
            (2, "node_scheduled"),
            (3, "node_completed"),
            (4, "run_started"),
        ]
        assert page.next_cursor is None

    def test_a_row_that_the_header_still_holds_too_shows_once(self, world: World, run_id: str) -> None:
        record(world, run_id, (RunStarted(),), (NodeScheduled("shown", 1, 1),))
        row = HistoryRow(version=2, at=1_001, seq=2, transitions=(NodeScheduled("shown", 1, 1),))
        world.table.write([Put(Item(pk=run_pk(run_id), sk=history_sk(2), body=msgspec.json.encode(row)))])
        assert [event.seq for event in world.runs.events(world.caller, run_id, None, None).items] == [1, 2]

    def test_rows_beyond_the_header_that_was_read_are_left_out(self, world: World, run_id: str) -> None:
        record(world, run_id, (RunStarted(),))
        row = HistoryRow(version=9, at=1_001, seq=2, transitions=(NodeScheduled("shown", 1, 1),))
        world.table.write([Put(Item(pk=run_pk(run_id), sk=history_sk(2), body=msgspec.json.encode(row)))])
        assert [event.seq for event in world.runs.events(world.caller, run_id, None, None).items] == [1]

    def test_attempts_follow_the_entry_that_handed_them_out(self, world: World, run_id: str) -> None:
        error = StepError("BOOM")
        claim(world, run_id, "shown", 1, status=AttemptStatus.FAILED, started_at=1_500, error=error)
        record(
            world,
            run_id,
            (RunStarted(), NodeScheduled("shown", 1, 1, Inline({"in": 1}))),
            (NodeRetrying("shown", 1, error, 2_000), NodeScheduled("shown", 2, 2)),
        )
        events = world.runs.events(world.caller, run_id, None, None).items
        assert [(event.seq, event.kind, event.type) for event in events] == [
            (1, "transition", "run_started"),
            (2, "transition", "node_scheduled"),
            (2, "attempt", "attempt_failed"),
            (3, "transition", "node_retrying"),
            (4, "transition", "node_scheduled"),
        ]
        attempt = events[2]
        assert (attempt.at, attempt.node, attempt.data["input"]) == (1_500, "shown", {"in": 1})
        assert attempt.data["started_at"] == "1970-01-01T00:00:01.500Z"
        assert attempt.data["output"] is None
        assert events[3].data["error"]["code"] == "BOOM"
        assert events[3].data["retry_at"] == "1970-01-01T00:00:02.000Z"

    def test_values_in_events_are_redacted(self, world: World, run_id: str) -> None:
        claim(world, run_id, "hashed", 1, started_at=1, output=Inline("secret"), heartbeat_details={"at": "secret"})
        record(
            world,
            run_id,
            (NodeScheduled("hashed", 1, 1, Inline("secret")), NodeCompleted("hashed", Inline("secret"))),
            (RunEnded(RunStatus.COMPLETED, Inline("secret")),),
        )
        events = world.runs.events(world.caller, run_id, None, None)
        assert "secret" not in str(msgspec.to_builtins(events))
        attempts = world.runs.attempts(world.caller, run_id, None, None)
        assert "secret" not in str(msgspec.to_builtins(attempts))

    def test_events_page_by_transition(self, world: World, run_id: str) -> None:
        claim(world, run_id, "shown", 1, started_at=1)
        ticks = tuple((NodeScheduled("shown", n, n), NodeRetrying("shown", n, StepError("X"), 5)) for n in range(1, 6))
        record(world, run_id, *ticks)
        seen: list[tuple[int, str]] = []
        cursor: str | None = None
        while True:
            page = world.runs.events(world.caller, run_id, 3, cursor)
            seen += [(event.seq, event.kind) for event in page.items]
            cursor = page.next_cursor
            if cursor is None:
                break
        assert [seq for seq, kind in seen if kind == "transition"] == list(range(1, 11))
        assert [kind for _, kind in seen].count("attempt") == 1

    def test_the_audit_trail_has_every_request_and_its_outcome(self, world: World, run_id: str) -> None:
        first = OperatorAudited("i1", "pause", "applied", actor="k", request_id="op-1", reason="hold")
        second = OperatorAudited("i2", "pause", "rejected", request_id="op-2", code="X", message="no")
        record(world, run_id, (RunStarted(), first), (second,))
        page = world.runs.audit(world.caller, run_id, 1, None)
        (entry,) = page.items
        assert (entry.operation, entry.outcome, entry.actor, entry.reason) == ("pause", "applied", "k", "hold")
        (rest,) = world.runs.audit(world.caller, run_id, 1, page.next_cursor).items
        assert (rest.outcome, rest.code, rest.message) == ("rejected", "X", "no")
        kinds = [event.kind for event in world.runs.events(world.caller, run_id, None, None).items]
        assert kinds == ["transition", "audit", "audit"]


def test_attempts_page_by_node_and_number(world: World, run_id: str) -> None:
    for node in ("hashed", "shown"):
        for number in (1, 2, 10):
            claim(world, run_id, node, number, started_at=1, deliveries=2)
    seen = []
    cursor: str | None = None
    while True:
        page = world.runs.attempts(world.caller, run_id, 4, cursor)
        seen += [(attempt.node, attempt.attempt) for attempt in page.items]
        assert all(attempt.deliveries == 2 for attempt in page.items)
        cursor = page.next_cursor
        if cursor is None:
            break
    assert seen == [(node, number) for node in ("hashed", "shown") for number in (1, 2, 10)]


def test_attempts_of_one_node_are_read_alone(world: World, run_id: str) -> None:
    for node in ("hashed", "shown", "shown@1"):
        for number in (1, 2, 10):
            claim(world, run_id, node, number, started_at=1)
    first = world.runs.attempts(world.caller, run_id, 2, None, "shown")
    rest = world.runs.attempts(world.caller, run_id, 2, first.next_cursor, "shown")
    found = [(attempt.node, attempt.attempt) for attempt in (*first.items, *rest.items)]
    assert (found, rest.next_cursor) == ([("shown", number) for number in (1, 2, 10)], None)
    for unknown in ("nothing", "shown@" + "9" * 300):
        with pytest.raises(RefusedError, match="no such step"):
            world.runs.attempts(world.caller, run_id, None, None, unknown)


class TestOutputs:
    def test_programs_get_values_unredacted(self, world: World, run_id: str) -> None:
        done = NodeState(status=NodeStatus.COMPLETED, output=Inline({"card": "4111"}))
        change(world, run_id, nodes={"omitted": done}, status=RunStatus.COMPLETED, output=Inline([1]))
        assert world.runs.node_output(world.caller, run_id, "omitted") == {"card": "4111"}
        assert world.runs.output(world.caller, run_id) == [1]

    def test_a_node_that_the_graph_does_not_have_is_unknown(self, world: World, run_id: str) -> None:
        assert world.runs.node_output(world.caller, run_id, "later") is None
        with refused(ErrorCode.NOT_FOUND, "NODE_NOT_FOUND"):
            world.runs.node_output(world.caller, run_id, "nobody")

    def test_a_run_has_its_output_at_the_end(self, world: World, run_id: str) -> None:
        with refused(ErrorCode.FAILED_PRECONDITION, "RUN_NOT_FINISHED"):
            world.runs.output(world.caller, run_id)

    def test_last_steps_that_gave_too_much_together_are_read_one_by_one(self, world: World, run_id: str) -> None:
        large = NodeState(status=NodeStatus.COMPLETED, output=BlobRef("nobody/reads-this", 5 * 1_048_576 + 1))
        change(world, run_id, nodes={"later": large}, status=RunStatus.COMPLETED)
        with refused(ErrorCode.FAILED_PRECONDITION, "OUTPUT_TOO_LARGE"):
            world.runs.output(world.caller, run_id)


def test_another_tenants_run_answers_like_an_unknown_one(world: World, run_id: str) -> None:
    stranger = world.stranger()
    reads: list[Callable[[str], object]] = [
        lambda id_: world.runs.summary(stranger, id_),
        lambda id_: world.runs.snapshot(stranger, id_),
        lambda id_: world.runs.steps(stranger, id_),
        lambda id_: world.runs.events(stranger, id_, None, None),
        lambda id_: world.runs.attempts(stranger, id_, None, None),
        lambda id_: world.runs.audit(stranger, id_, None, None),
        lambda id_: world.runs.output(stranger, id_),
        lambda id_: world.runs.node_output(stranger, id_, "shown"),
    ]
    for read in reads:
        answers = []
        for asked in (run_id, "unknown", "", "\ud800", "x" * 5_000):
            with refused(ErrorCode.NOT_FOUND, "RUN_NOT_FOUND") as found:
                read(asked)
            answers.append((found[0].message, found[0].violations))
        assert len(set(answers)) == 1
    assert world.runs.list_runs(stranger, RunFilter(), None, None).items == ()


def test_current_steps_are_those_begun_and_not_ended(world: World, run_id: str) -> None:
    nodes = {
        "shown": NodeState(status=NodeStatus.COMPLETED, entered_at=1),
        "hashed": NodeState(status=NodeStatus.SCHEDULED, entered_at=3),
        "later": NodeState(status=NodeStatus.WAITING, entered_at=2),
    }
    change(world, run_id, status=RunStatus.RUNNING, nodes=nodes)
    summary = world.runs.summary(world.caller, run_id)
    assert (summary.status, summary.current_steps) == ("running", ("later", "hashed"))
