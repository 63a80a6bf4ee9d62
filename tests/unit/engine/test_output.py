"""What a run gives at its end, and what is too much."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.engine.runs import Run

from ductor.engine import context, decide
from ductor.model import payload
from ductor.model.enums import RunStatus
from ductor.model.json import JSON, encode
from ductor.model.payload import MAX_OUTPUT_BYTES
from ductor.steps import shaping

# Twice this, with its quotes and the object around it, is just over what an output may be.
HALF = "x" * (MAX_OUTPUT_BYTES // 2)


def run_with(output: Any) -> Run:
    return Run({"steps": [{"ref": "a", "type": "action", "action": "core.echo"}], "output": output})


def test_an_output_of_over_5_mb_fails_the_run() -> None:
    run = run_with({"one": "${{ STEPS.a.output.half }}", "two": "${{ STEPS.a.output.half }}"})
    run.succeed("a", {"half": HALF})
    assert (run.state.status, run.status("a")) == (RunStatus.FAILED, "completed")
    assert run.state.error is not None
    assert (run.state.error.code, run.state.error.retryable) == ("OUTPUT_TOO_LARGE", False)


def test_an_output_of_half_that_completes_it() -> None:
    run = run_with({"one": "${{ STEPS.a.output.half }}"})
    run.succeed("a", {"half": HALF})
    assert run.state.status is RunStatus.COMPLETED


@pytest.mark.parametrize("size", [100, 20_000])
def test_what_a_step_and_a_run_give_is_encoded_once_each(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "y" * size
    made = {"result": {"text": text}}
    given = {"said": text}
    seen: list[JSON] = []

    def counted(value: JSON) -> bytes:
        seen.append(value)
        return encode(value)

    for module in (context, decide, payload, shaping):
        monkeypatch.setattr(module, "encode", counted)
    shaped = {"operation": "project", "project": {"text": "TRIGGER.payload"}}
    step = {"ref": "a", "type": "dataflow", "args": shaped}
    run = Run({"steps": [step], "output": {"said": "${{ STEPS.a.output.result.text }}"}}, text)
    assert run.state.status is RunStatus.COMPLETED
    assert [value for value in seen if value in (made, given)] == [made, given]
