"""A templated connection_ref is rendered once, with the input, and kept for every retry."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.engine.runs import Run

from ductor.engine.task import task_of
from ductor.model.attempt import AttemptTask
from ductor.model.enums import RunStatus


def call(**fields: Any) -> dict[str, Any]:
    return {
        "ref": "call",
        "type": "action",
        "action": "core.echo",
        "retry_max_attempts": 3,
        "retry_jitter": 0,
        **fields,
    }


def task(run: Run, attempt: int = 1) -> AttemptTask:
    found = task_of(run.graph, run.state, "call", attempt)
    assert found is not None
    return found


def test_a_literal_goes_along_as_it_is() -> None:
    run = Run({"steps": [call(connection_ref="stripe_main", connection_ref_mode="environment")]})
    assert (task(run).connection_ref, task(run).connection_ref_mode) == ("stripe_main", "environment")


def test_a_template_is_rendered_when_the_step_is_scheduled() -> None:
    run = Run({"steps": [call(connection_ref="${{ TRIGGER.payload.use }}")]}, {"use": "stripe_main"})
    assert (task(run).connection_ref, task(run).connection_ref_mode) == ("stripe_main", "direct")


def test_a_retry_keeps_what_the_first_attempt_got() -> None:
    document = {"steps": [call(connection_ref="at-${{ RUN.now }}")]}
    run = Run(document)
    first = task(run).connection_ref
    run.fail("call", "BUSY")
    entry = run.entry("call")
    assert entry is not None
    run.wake(entry.deadline)
    assert task(run, 2).connection_ref == first


@pytest.mark.parametrize("value", ["", 7, None, ["a"], "x" * 201])
def test_what_is_no_name_fails_the_step(value: Any) -> None:
    run = Run({"steps": [call(connection_ref="${{ TRIGGER.payload.use }}")]}, {"use": value})
    assert run.state.status is RunStatus.FAILED
    assert run.error("call") == "EXPRESSION_ERROR"


def test_a_step_without_connection_names_no_environment() -> None:
    assert task(Run({"steps": [call()]})).environment == ""
