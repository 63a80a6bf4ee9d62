"""`ductor.trigger` and `ductor.publish_event`: once per step, for the tenant and environment of the run; loops end."""

from __future__ import annotations

from typing import Any
from unittest import mock

import msgspec
import pytest
from tests.unit.app.test_event_triggers import again, listening
from tests.unit.app.world import HELLO, World
from tests.unit.worker.desk import Desk
from tests.unit.worker.test_crashes import POINTS, crash_and_recover

from ductor.actions import own
from ductor.actions.context import ActionContext
from ductor.actions.errors import ActionError
from ductor.actions.execute import execute
from ductor.actions.registry import default_registry
from ductor.app.admission import Label, TriggerRequest
from ductor.app.environments import EnvironmentChanges
from ductor.app.own_actions import OwnActions
from ductor.app.run_filter import RunFilter
from ductor.model.attempt import AttemptStatus, AttemptTask
from ductor.model.causation import MAX_DEPTH
from ductor.model.payload import Inline
from ductor.ports import Outgoing, UnavailableError
from ductor.testing.memory import MemoryTable

CHILD = {**HELLO, "family_slug": "child"}


class Acting:
    """An installation with a run whose steps act."""

    def __init__(self) -> None:
        self.world = World()
        self.registry = default_registry()
        world = self.world
        acting = OwnActions(table=world.table, library=world.library, triggers=world.triggers, events=world.events)
        self.registry.provide(acting.actions())
        request = TriggerRequest(correlation_labels=(Label("order", "o-1"), Label("shop", "s-1")))
        self.run_id = world.triggers.trigger(world.caller, world.published(HELLO), request).run_id

    def act(self, action: str, args: dict[str, Any], node: str = "step", **context: Any) -> Any:
        found = self.registry.get(action)
        assert found is not None
        fields = {"run_id": self.run_id, "tenant": self.world.tenant, "node": node, "causation_depth": 0, **context}
        return execute(found, args, ActionContext(idempotency_key=f"{self.run_id}/{node}", **fields))[0]

    def fails(self, action: str, args: dict[str, Any], **context: Any) -> ActionError:
        with pytest.raises(ActionError) as caught:
            self.act(action, args, **context)
        return caught.value


@pytest.fixture
def acting() -> Acting:
    return Acting()


def test_the_newest_version_starts_once_per_step(acting: Acting) -> None:
    first = acting.world.published(CHILD)
    done = acting.act("ductor.trigger", {"family_slug": "child", "input": {"n": 1}})
    assert (done["definition_id"], done["status"]) == (first, "running")
    second = again(acting.world, CHILD)
    assert acting.act("ductor.trigger", {"family_slug": "child", "input": {"n": 1}}) == done
    other = acting.act("ductor.trigger", {"family_slug": "child"}, node="step@1")
    assert (other["run_id"] != done["run_id"], other["definition_id"]) == (True, second)


def test_the_run_is_deeper_knows_who_asked_and_has_the_labels(acting: Acting) -> None:
    acting.world.published(CHILD)
    args = {"family_slug": "child", "correlation_labels": {"shop": "s-2", "parcel": "p"}, "subject_id": "x"}
    origin = acting.world.header(acting.act("ductor.trigger", args, causation_depth=4)["run_id"]).origin
    assert (origin.depth, origin.created_by, origin.subject_id) == (5, f"run:{acting.run_id}", "x")
    assert dict(origin.labels) == {"order": "o-1", "shop": "s-2", "parcel": "p"}
    assert origin.journey_id == origin.run_id


def test_a_start_that_broke_off_is_gone_on_with(acting: Acting) -> None:
    acting.world.published(CHILD)
    with (
        mock.patch.object(acting.world.intents, "send", side_effect=UnavailableError("away")),
        pytest.raises(UnavailableError),
    ):
        acting.act("ductor.trigger", {"family_slug": "child"})
    done = acting.act("ductor.trigger", {"family_slug": "child"})
    started = [intent.run_id for intent in acting.world.sent()]
    assert started.count(done["run_id"]) == 1


@pytest.mark.parametrize("point", POINTS)
def test_a_worker_that_dies_anywhere_leaves_one_run(acting: Acting, point: str) -> None:
    world = acting.world
    world.published(CHILD)
    assert isinstance(world.table, MemoryTable)
    triggers = acting.registry.get("ductor.trigger")
    assert triggers is not None
    desk = Desk(triggers, point=f"worker.{point}", table=world.table)
    args = Inline({"family_slug": "child"})
    task = AttemptTask(
        run_id=acting.run_id,
        tenant=world.tenant,
        node="n",
        attempt=1,
        generation=1,
        action="ductor.trigger",
        input=args,
        idempotency_key="key",
    )
    desk.steps.send([Outgoing(msgspec.json.encode(task))])
    assert crash_and_recover(desk) == 1
    row = desk.attempts.read(acting.run_id, "n", 1)
    assert row is not None
    assert row.attempt.status is AttemptStatus.SUCCEEDED
    by = f"run:{acting.run_id}"
    runs = world.runs.list_runs(world.caller, RunFilter(), None, None).items
    assert len([run for run in runs if run.created_by == by]) == 1


def test_a_loop_is_refused(acting: Acting) -> None:
    acting.world.published(CHILD)
    acting.act("ductor.trigger", {"family_slug": "child"}, node="last", causation_depth=MAX_DEPTH - 1)
    fault = acting.fails("ductor.trigger", {"family_slug": "child"}, causation_depth=MAX_DEPTH)
    assert (fault.code, fault.retryable) == ("CAUSATION_TOO_DEEP", False)


def test_a_run_starts_nothing_outside_of_its_environment(acting: Acting) -> None:
    world = acting.world
    world.admin.environments.create(world.caller, "prod", EnvironmentChanges())
    elsewhere = world.published({**CHILD, "environment": "prod"})
    assert acting.fails("ductor.trigger", {"definition_id": elsewhere}).code == "ENVIRONMENT_NOT_WRITABLE"
    assert acting.fails("ductor.trigger", {"family_slug": "child"}).code == "DEFINITION_NOT_FOUND"


def test_another_tenant_has_neither_the_definition_nor_the_run(acting: Acting) -> None:
    child = acting.world.published(CHILD)
    for args in ({"definition_id": child}, {"family_slug": "child"}):
        fault = acting.fails("ductor.trigger", args, tenant="other")
        assert (fault.code, fault.retryable) == ("RUN_NOT_FOUND", False)


@pytest.mark.parametrize(
    ("args", "code"),
    [
        ({}, "ACTION_ARGS_INVALID"),
        ({"family_slug": "a", "definition_id": "b"}, "ACTION_ARGS_INVALID"),
        ({"family_slug": "nobody"}, "DEFINITION_NOT_FOUND"),
        ({"definition_id": "nobody"}, "DEFINITION_NOT_FOUND"),
        ({"family_slug": "child", "variables": {"x": 1}}, "VARIABLE_UNKNOWN"),
        ({"family_slug": "child", "correlation_labels": {"Bad Key": "x"}}, "ACTION_ARGS_INVALID"),
        ({"family_slug": "child", "correlation_labels": {f"k{n}": "x" for n in range(9)}}, "LABEL_INVALID"),
    ],
)
def test_what_cannot_start_says_why(acting: Acting, args: dict[str, Any], code: str) -> None:
    acting.world.published(CHILD)
    fault = acting.fails("ductor.trigger", args)
    assert (fault.code, fault.retryable) == (code, False)


def test_an_event_starts_runs_once_per_step(acting: Acting) -> None:
    acting.world.published(listening("order.paid", slug="child"))
    args = {"event_name": "order.paid", "payload": {"n": 1}}
    done = acting.act("ductor.publish_event", args, causation_depth=2)
    (run_id,) = done["started_runs"]
    assert acting.world.header(run_id).origin.depth == 3
    assert acting.act("ductor.publish_event", args, causation_depth=2)["started_runs"] == []
    assert len(acting.act("ductor.publish_event", args, node="step@1")["started_runs"]) == 1


def test_a_start_by_an_event_that_is_too_deep_is_told(acting: Acting) -> None:
    acting.world.published(listening("order.paid", slug="child"))
    done = acting.act("ductor.publish_event", {"event_name": "order.paid"}, causation_depth=MAX_DEPTH)
    assert [(one["family_slug"], one["code"]) for one in done["refused_starts"]] == [("child", "CAUSATION_TOO_DEEP")]


@pytest.mark.parametrize(
    ("args", "code"),
    [({"event_name": "ductor.run.completed"}, "EVENT_NAME_RESERVED"), ({"event_name": ""}, "ACTION_ARGS_INVALID")],
)
def test_what_is_no_event_of_a_step_is_refused(acting: Acting, args: dict[str, Any], code: str) -> None:
    fault = acting.fails("ductor.publish_event", args)
    assert (fault.code, fault.retryable) == (code, False)


def test_where_nothing_runs_they_say_so() -> None:
    for action in own.actions(own.Nobody()):
        with pytest.raises(ActionError, match="in a worker of an installation only"):
            execute(
                action, {"family_slug": "a"} if action.name == own.TRIGGER else {"event_name": "a"}, ActionContext()
            )
