"""What a handler reads of its task."""

from __future__ import annotations

from tests.unit.client.server import task

from ductor.client import Task
from ductor.model.causation import HEADER


def test_rule_24_what_a_handler_starts_can_say_how_deep_its_run_is() -> None:
    assert Task(task(causation_depth=5)).causation == {HEADER: "5"}


def test_a_task_of_an_older_server_begins_anew() -> None:
    assert Task(task()).causation == {HEADER: "0"}
