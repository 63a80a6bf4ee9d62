"""What a run gives at its end, and what is too much."""

from __future__ import annotations

from typing import Any

from tests.unit.engine.runs import Run

from ductor.model.enums import RunStatus
from ductor.model.payload import MAX_OUTPUT_BYTES

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
