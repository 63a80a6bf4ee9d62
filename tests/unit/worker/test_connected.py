"""Steps with connections: the action gets the secret, and nothing that is stored does."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from tests.unit.worker.desk import RUN, Desk, does

from ductor.actions.connection import Connection, Secret
from ductor.actions.context import ActionContext
from ductor.actions.errors import ActionError
from ductor.app.connected_run import Resolver
from ductor.model.attempt import AttemptStatus, AttemptTask
from ductor.model.payload import Inline
from ductor.ports import UnavailableError

SECRET = "sk_live_abcdef"
STRIPE = Connection(id="1", slug="main", type="stripe", secrets={"api_key": Secret(SECRET)})


class Fixed:
    """Always this connection, or this fault."""

    def __init__(self, found: Connection | Exception | None) -> None:
        self.found = found
        self.asked: list[AttemptTask] = []

    def resolve(self, task: AttemptTask) -> Connection | None:
        self.asked.append(task)
        if isinstance(self.found, Exception):
            raise self.found
        return self.found


def run(function: Any, connections: Resolver) -> Desk:
    """A desk after one attempt of `function` with a connection."""
    desk = Desk(does(function))
    desk.send(connection_ref="main", connection_ref_mode="direct", environment="prod")
    desk.work(desk.worker(connections=connections))
    stored = [msgspec.json.encode(desk.row()), *(msgspec.json.encode(intent) for intent in desk.told())]
    assert all(SECRET.encode() not in data for data in stored)
    return desk


def test_the_action_gets_the_connection() -> None:
    seen: list[Connection | None] = []
    connections = Fixed(STRIPE)

    def look(args: Any, ctx: ActionContext) -> Any:
        seen.append(ctx.connection)
        return {}

    run(look, connections)
    assert seen == [STRIPE]
    (asked,) = connections.asked
    assert (asked.connection_ref, asked.connection_ref_mode, asked.environment) == ("main", "direct", "prod")


def test_an_output_that_repeats_the_secret_is_stored_without_it() -> None:
    desk = run(lambda args, ctx: {"echo": {"auth": f"Bearer {SECRET}"}, "n": 1}, Fixed(STRIPE))
    assert desk.row().output == Inline({"echo": {"auth": "Bearer ***"}, "n": 1})


def test_a_large_output_is_stored_without_the_secret_too() -> None:
    desk = run(lambda args, ctx: {"echo": [SECRET, "x" * 20_000]}, Fixed(STRIPE))
    assert desk.payloads.load(RUN, desk.row().output) == {"echo": ["***", "x" * 20_000]}


@pytest.mark.parametrize(
    "fault",
    [
        ActionError(f"CODE_{SECRET}", f"refused {SECRET}", details={"sent": [SECRET]}),
        ValueError(f"bad key {SECRET}"),
        KeyError(SECRET),
    ],
)
def test_an_error_that_repeats_the_secret_is_stored_without_it(fault: Exception) -> None:
    def fail(args: Any, ctx: ActionContext) -> Any:
        raise fault

    desk = run(fail, Fixed(STRIPE))
    assert desk.row().status is AttemptStatus.FAILED
    assert "***" in str(desk.row().error)


def test_a_heartbeat_that_repeats_the_secret_is_stored_without_it() -> None:
    def beat(args: Any, ctx: ActionContext) -> Any:
        ctx.heartbeat({"with": SECRET})
        return {}

    run(beat, Fixed(STRIPE))


def test_an_output_that_is_the_secret_object_fails_the_step() -> None:
    desk = run(lambda args, ctx: {"key": STRIPE.secret("api_key")}, Fixed(STRIPE))
    error = desk.row().error
    assert error is not None
    assert error.code == "OUTPUT_INVALID"


def test_an_unknown_connection_fails_the_attempt_before_the_call() -> None:
    called: list[Any] = []

    def call(args: Any, ctx: ActionContext) -> Any:
        called.append(args)
        return {}

    fault = ActionError("CONNECTION_UNKNOWN", "no such connection", retryable=False)
    desk = run(call, Fixed(fault))
    error = desk.row().error
    assert error is not None
    assert (error.code, error.retryable, called) == ("CONNECTION_UNKNOWN", False, [])


def test_secrets_that_cannot_be_read_now_leave_the_attempt_to_its_next_delivery() -> None:
    desk = Desk(does(lambda args, ctx: {}))
    desk.send(connection_ref="main")
    connections = Fixed(UnavailableError("throttled"))
    desk.work(desk.worker(connections=connections))
    assert desk.row().status is AttemptStatus.RUNNING
    connections.found = STRIPE
    desk.lose_lease()
    desk.work(desk.worker(connections=connections))
    assert desk.row().status is AttemptStatus.SUCCEEDED


def test_a_worker_without_connections_refuses_steps_that_name_one() -> None:
    desk = Desk(does(lambda args, ctx: {}))
    desk.send(connection_ref="main")
    desk.work(desk.worker())
    error = desk.row().error
    assert error is not None
    assert error.code == "CONNECTION_UNKNOWN"
