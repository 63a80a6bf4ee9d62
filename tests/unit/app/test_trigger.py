"""Admission of runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.unit.app.refusal import refused
from tests.unit.app.world import HELLO, World

from ductor.adapters.local.blobs import SqliteBlobs
from ductor.adapters.local.database import Database
from ductor.adapters.local.fifo import SqliteFifoQueue
from ductor.adapters.local.system import SystemIds
from ductor.adapters.local.table import SqliteTable
from ductor.adapters.local.unit import SqliteUnit
from ductor.app.admission import Label, TriggerRequest
from ductor.app.checkpoints import Reached
from ductor.app.headers import HEAD, run_pk, shard
from ductor.app.trigger import Triggered, Triggers
from ductor.model.enums import NodeStatus, RunStatus
from ductor.model.errors import ErrorCode
from ductor.model.intent import IntentKind
from ductor.model.payload import MAX_INPUT_BYTES, BlobRef, Inline
from ductor.model.run import NodeState, RunState
from ductor.ports import Outgoing, QueueName, UnavailableError
from ductor.testing.memory import MemoryQueue, NullUnit, VirtualClock


def trigger(world: World, definition_id: str, **fields: Any) -> Triggered:
    return world.triggers.trigger(world.caller, definition_id, TriggerRequest(**fields))


@pytest.fixture
def published(world: World) -> str:
    return world.published()


def test_a_run_is_stored_and_asked_to_start(world: World, published: str) -> None:
    done = trigger(world, published, subject_type="lead", subject_id="7", input={"a": 1}, external_deployment_id="prod")
    assert done.status is RunStatus.RUNNING
    state = world.header(done.run_id)
    assert (state.status, state.version, state.seq) == (RunStatus.PENDING, 1, 0)
    origin = state.origin
    assert (origin.tenant, origin.definition_id, origin.family_slug) == (world.tenant, published, "hello_world")
    assert (origin.definition_version, origin.environment) == (1, "default")
    assert (origin.subject_type, origin.subject_id, origin.external_deployment_id) == ("lead", "7", "prod")
    assert origin.root_run_id == origin.journey_id == done.run_id
    assert origin.created_by == world.caller.key_id
    assert world.payloads.load(done.run_id, origin.input) == {"a": 1}
    (intent,) = world.sent()
    assert (intent.kind, intent.run_id) == (IntentKind.START, done.run_id)


def test_a_run_that_nobody_starts_is_found_by_when_it_was_admitted(world: World, published: str) -> None:
    run_id = trigger(world, published).run_id
    item = world.table.get(run_pk(run_id), HEAD)
    assert item is not None
    assert item.i3 == (f"STARTING#{shard(run_id)}", f"{world.clock.now_ms():013d}#{run_id}#{world.tenant}")
    assert item.i1 is None


def test_the_input_may_be_any_json_and_is_an_empty_object_when_missing(world: World, published: str) -> None:
    values: list[Any] = [None, 0, False, "x", [], {"deep": [{"id": 9007199254740993}]}]
    for value in values:
        run_id = trigger(world, published, input=value).run_id
        assert world.payloads.load(run_id, world.header(run_id).origin.input) == value
    run_id = trigger(world, published).run_id
    assert world.payloads.load(run_id, world.header(run_id).origin.input) == {}


def test_inputs_up_to_1_mb_are_kept_outside_the_header_and_larger_ones_refused(world: World, published: str) -> None:
    largest = "x" * (MAX_INPUT_BYTES - 2)
    run_id = trigger(world, published, input=largest).run_id
    kept = world.header(run_id).origin.input
    assert isinstance(kept, BlobRef)
    assert world.payloads.load(run_id, kept) == largest
    world.sent()
    with refused(ErrorCode.PAYLOAD_TOO_LARGE, "INPUT_TOO_LARGE", field="input"):
        trigger(world, published, input=largest + "x")
    assert world.sent() == []


def test_what_json_cannot_hold_is_refused(world: World, published: str) -> None:
    nested: list[Any] = []
    for _ in range(100_000):
        nested = [nested]
    for value in ("\ud800", nested, {"x": object()}):
        with refused(ErrorCode.INVALID_ARGUMENT, "FIELD_INVALID", field="input"):
            trigger(world, published, input=value)


def test_only_published_versions_start_runs(world: World, published: str) -> None:
    draft = world.definitions.create(world.caller, {**HELLO, "family_slug": "d"}).definition
    with refused(ErrorCode.FAILED_PRECONDITION, "DEFINITION_NOT_PUBLISHED"):
        trigger(world, draft.id)
    world.definitions.archive(world.caller, published)
    with refused(ErrorCode.FAILED_PRECONDITION, "DEFINITION_ARCHIVED"):
        trigger(world, published)


def test_another_tenants_definition_answers_like_an_unknown_one(world: World, published: str) -> None:
    stranger = world.stranger()
    for definition_id in (published, "no-such-id", "\ud800", ""):
        with refused(ErrorCode.NOT_FOUND, "DEFINITION_NOT_FOUND"):
            world.triggers.trigger(stranger, definition_id, TriggerRequest())


def test_triggering_needs_its_scope(world: World, published: str) -> None:
    viewer = world.new_caller(world.tenant, scopes=frozenset({"workflow:read"}))
    with refused(ErrorCode.PERMISSION_DENIED, "SCOPE_MISSING"):
        world.triggers.trigger(viewer, published, TriggerRequest())


class TestIdempotency:
    def test_the_same_request_gets_the_same_run(self, world: World, published: str) -> None:
        first = trigger(world, published, idempotency_key="k", input={"b": 1, "a": 2})
        again = trigger(world, published, idempotency_key="k", input={"a": 2, "b": 1})
        assert again == Triggered(first.run_id, RunStatus.RUNNING, repeated=True)

    def test_a_repeat_asks_to_start_again_while_the_run_is_pending_and_never_after(
        self, world: World, published: str
    ) -> None:
        run_id = trigger(world, published, idempotency_key="k").run_id
        trigger(world, published, idempotency_key="k")
        starts = world.sent()
        assert len(starts) == 2
        assert starts[0].id == starts[1].id
        state = world.header(run_id)
        state.status = RunStatus.FAILED
        world.store(state)
        assert trigger(world, published, idempotency_key="k").status is RunStatus.FAILED
        assert world.sent() == []

    def test_another_body_is_refused_and_the_run_named(self, world: World, published: str) -> None:
        run_id = trigger(world, published, idempotency_key="k", input=1).run_id
        for changed in ({"input": 2}, {"input": 1, "subject_id": "x"}, {"input": True}):
            with refused(ErrorCode.ALREADY_EXISTS, "IDEMPOTENCY_KEY_REUSED") as found:
                trigger(world, published, idempotency_key="k", **changed)
            assert run_id in found[0].message

    def test_a_key_is_for_one_definition_and_tenant(self, world: World, published: str) -> None:
        other = world.published({**HELLO, "family_slug": "other"})
        first, second = (trigger(world, one, idempotency_key="k").run_id for one in (published, other))
        assert first != second

    def test_the_run_is_found_also_after_the_version_was_archived(self, world: World, published: str) -> None:
        run_id = trigger(world, published, idempotency_key="k").run_id
        world.definitions.archive(world.caller, published)
        assert trigger(world, published, idempotency_key="k").run_id == run_id

    @pytest.mark.parametrize("key", [" ", "a b", "🙂" * 256, "x" * 256, "a#b/c\n", "\ud800"])
    def test_any_text_is_a_key(self, world: World, published: str, key: str) -> None:
        run_id = trigger(world, published, idempotency_key=key).run_id
        assert trigger(world, published, idempotency_key=key).run_id == run_id

    @pytest.mark.parametrize("key", ["", "x" * 257])
    def test_an_empty_or_overlong_key_is_refused(self, world: World, published: str, key: str) -> None:
        with refused(ErrorCode.INVALID_ARGUMENT, "IDEMPOTENCY_KEY_INVALID", field="idempotency_key"):
            trigger(world, published, idempotency_key=key)

    def test_without_a_key_every_request_is_a_run(self, world: World, published: str) -> None:
        assert trigger(world, published).run_id != trigger(world, published).run_id

    def test_30_at_once_make_one_run(self, tmp_path: Path) -> None:
        database = Database(tmp_path / "ductor.db")
        try:
            clock = VirtualClock()
            world = World(
                table=SqliteTable(database),
                blobs=SqliteBlobs(database),
                intents=SqliteFifoQueue(database, QueueName.INTENTS, clock),
                unit=SqliteUnit(database),
                ids=SystemIds(),
            )
            published = world.published()
            with ThreadPoolExecutor(15) as pool:
                done = list(pool.map(lambda _: trigger(world, published, idempotency_key="k", input=[1]), range(30)))
            assert len({one.run_id for one in done}) == 1
            assert [one.repeated for one in done].count(False) == 1
        finally:
            database.close()


class FailingQueue(MemoryQueue):
    """Accepts nothing."""

    def send(self, messages: Sequence[Outgoing]) -> tuple[int, ...]:
        return tuple(range(len(messages)))


def test_a_start_that_could_not_be_sent_is_sent_by_the_repeat(world: World, published: str) -> None:
    good, world.triggers._intents = world.triggers._intents, FailingQueue(QueueName.INTENTS, world.clock)
    with pytest.raises(UnavailableError):
        trigger(world, published, idempotency_key="k")
    world.triggers._intents = good
    run_id = trigger(world, published, idempotency_key="k").run_id
    assert [intent.run_id for intent in world.sent()] == [run_id]


class TestLabels:
    def test_labels_are_kept_with_the_run(self, world: World, published: str) -> None:
        run_id = trigger(
            world, published, correlation_labels=(Label("order", "o-1"), Label("import_2", "ü" * 256))
        ).run_id
        assert world.header(run_id).origin.labels == (("order", "o-1"), ("import_2", "ü" * 256))

    @pytest.mark.parametrize(
        ("labels", "fields"),
        [
            ([("Order", "1")], ["correlation_labels[0].key"]),
            (
                [("", "1"), ("1a", "1"), ("a-b", "1"), ("a" * 64, "1")],
                [f"correlation_labels[{n}].key" for n in range(4)],
            ),
            ([("a", ""), ("b", "x" * 257)], ["correlation_labels[0].id", "correlation_labels[1].id"]),
            ([("a", "1"), ("a", "2")], ["correlation_labels[1].key"]),
            ([(f"a{n}", "1") for n in range(11)], ["correlation_labels"]),
        ],
    )
    def test_each_bad_label_is_named(
        self, world: World, published: str, labels: list[tuple[str, str]], fields: list[str]
    ) -> None:
        with refused(ErrorCode.INVALID_ARGUMENT, *["LABEL_INVALID"] * len(fields)) as found:
            trigger(world, published, correlation_labels=tuple(Label(*label) for label in labels))
        assert [violation.field for violation in found[0].violations] == fields


class TestVariables:
    DOCUMENT = {
        **HELLO,
        "variables": {"fixed": 1, "open": {"default": "a", "overridable": True}, "shut": {"default": 2}},
    }

    def test_defaults_are_frozen_and_overlaid_where_allowed(self, world: World) -> None:
        published = world.published(self.DOCUMENT)
        for given, expected in [({}, "a"), ({"open": ["b"]}, ["b"]), ({"open": None}, None)]:
            run_id = trigger(world, published, variables=given).run_id
            frozen = world.payloads.load(run_id, world.header(run_id).origin.variables)
            assert frozen == {"fixed": 1, "open": expected, "shut": 2}

    def test_others_are_refused_by_name(self, world: World) -> None:
        published = world.published(self.DOCUMENT)
        with refused(
            ErrorCode.INVALID_ARGUMENT, "VARIABLE_NOT_OVERRIDABLE", "VARIABLE_NOT_OVERRIDABLE", "VARIABLE_UNKNOWN"
        ) as found:
            trigger(world, published, variables={"fixed": 2, "shut": 3, "new": 4, "open": "fine"})
        assert [one.field for one in found[0].violations] == ["variables.fixed", "variables.shut", "variables.new"]


class TestInputSchema:
    SCHEMA: dict[str, Any] = {
        "type": "object",
        "required": ["email", "age"],
        "properties": {"age": {"type": "integer"}, "tags": {"items": {"type": "string"}}},
    }

    def test_a_match_is_admitted(self, world: World) -> None:
        published = world.published({**HELLO, "input_schema": self.SCHEMA})
        assert trigger(world, published, input={"email": "a", "age": 1}).run_id

    def test_a_mismatch_has_one_error_per_path_and_no_run(self, world: World) -> None:
        published = world.published({**HELLO, "input_schema": self.SCHEMA})
        with refused(ErrorCode.INVALID_ARGUMENT, *["INPUT_INVALID"] * 3) as found:
            trigger(world, published, input={"age": "x", "tags": ["a", 1]})
        assert [one.field for one in found[0].violations] == ["input.age", "input.email", "input.tags[1]"]
        assert world.sent() == []

    def test_a_recursive_schema_and_a_deep_input_are_an_answer_too(self, world: World) -> None:
        schema = {"properties": {"n": {"$ref": "#"}}}
        published = world.published({**HELLO, "input_schema": schema})
        value: Any = {}
        for _ in range(900):
            value = {"n": value}
        with refused(ErrorCode.INVALID_ARGUMENT, "INPUT_INVALID", field="input"):
            trigger(world, published, input=value)


class TestCheckpoints:
    DOCUMENT: dict[str, Any] = {
        "family_slug": "sync",
        "steps": [
            {"ref": "answer", "type": "action", "action": "core.echo"},
            {"ref": "rest", "type": "wait", "args": {"duration": "1h"}},
        ],
        "edges": [{"source_ref": "answer", "target_ref": "rest"}],
        "checkpoints": [{"name": "answered", "step_ref": "answer", "response": True}],
    }
    TEMPLATE = {"got": "${{ STEPS.answer.output.x }}", "for": "${{ TRIGGER.payload.name }}"}

    def run(self, change: Callable[[RunState], None], after_ms: int, **point: Any) -> Triggered:
        """Trigger and wait; the run changes when so much virtual time has passed."""

        def wait(milliseconds: int) -> None:
            world.clock.advance(milliseconds)
            if not changed and world.clock.now_ms() >= begin + after_ms:
                (intent,) = world.sent()
                state = world.header(intent.run_id)
                change(state)
                world.store(state)
                changed.append(True)

        world = World()
        world.triggers = Triggers(
            table=world.table,
            payloads=world.payloads,
            intents=world.intents,
            unit=NullUnit(),
            clock=world.clock,
            ids=world.ids,
            library=world.library,
            wait=wait,
        )
        changed: list[bool] = []
        checkpoint = {**self.DOCUMENT["checkpoints"][0], **point}
        published = world.published({**self.DOCUMENT, "checkpoints": [checkpoint]})
        begin = world.clock.now_ms()
        done = trigger(world, published, wait_for_checkpoint=True, input={"name": "Ada"})
        self.took = world.clock.now_ms() - begin
        return done

    def reach(self, state: RunState) -> None:
        state.status = RunStatus.RUNNING
        state.checkpoints = {"answered": 1}
        state.root.nodes["answer"] = NodeState(status=NodeStatus.COMPLETED, output=Inline({"x": 1}))

    def test_the_steps_output_answers(self) -> None:
        done = self.run(self.reach, 1_000)
        assert done.checkpoint == Reached(RunStatus.RUNNING, True, {"x": 1})
        assert 1_000 <= self.took <= 1_300

    def test_the_checkpoints_own_output_is_rendered(self) -> None:
        done = self.run(self.reach, 0, output=self.TEMPLATE)
        assert done.checkpoint is not None
        assert done.checkpoint.output == {"got": 1, "for": "Ada"}

    def test_an_output_that_cannot_be_rendered_says_why(self) -> None:
        done = self.run(self.reach, 0, output="${{ STEPS.answer.output.missing }}")
        assert done.checkpoint is not None
        assert done.checkpoint.reached
        assert done.checkpoint.error is not None
        assert done.checkpoint.error.code == "EXPRESSION_ERROR"

    def test_a_run_that_ends_first_answers_with_its_end(self) -> None:
        def fail(state: RunState) -> None:
            state.status = RunStatus.FAILED

        done = self.run(fail, 500)
        assert (done.status, done.checkpoint) == (RunStatus.FAILED, Reached(RunStatus.FAILED, False))

    def test_when_time_is_up_the_run_goes_on(self) -> None:
        done = self.run(self.reach, 60_000)
        assert (done.status, done.checkpoint) == (RunStatus.RUNNING, Reached(RunStatus.RUNNING, False))
        assert self.took == 20_000

    def test_waiting_needs_a_response_checkpoint(self, world: World, published: str) -> None:
        with refused(ErrorCode.INVALID_ARGUMENT, "CHECKPOINT_REQUIRED", field="wait_for_checkpoint"):
            trigger(world, published, wait_for_checkpoint=True)
        assert world.sent() == []

    @pytest.mark.parametrize("seconds", [-1, 25.1, 1e308])
    def test_the_time_to_wait_is_bounded(self, world: World, published: str, seconds: float) -> None:
        with refused(ErrorCode.INVALID_ARGUMENT, "FIELD_INVALID", field="checkpoint_timeout_seconds"):
            trigger(world, published, checkpoint_timeout_seconds=seconds)


def test_the_header_survives_its_encoding(world: World, published: str) -> None:
    state = world.header(trigger(world, published, input={"k": "v" * 300}).run_id)
    assert msgspec.json.decode(msgspec.json.encode(state), type=type(state)) == state
