"""A scatter over many items, one no-op action each, on the local backend: how its time grows, and what it takes."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any, Final

from tests.benchmarks.definitions import scatter
from tests.benchmarks.local import DEADLINE_S, publish, running

from ductor.app.admission import TriggerRequest
from ductor.model.enums import RunStatus

FEW: Final = 1_000
MANY: Final = 10_000


def seconds_and_megabytes(few: int = FEW, many: int = MANY) -> tuple[float, float, int]:
    """Seconds of CPU for `few` and for `many` items, after a warm-up, and this process's peak memory in MB.

    CPU rather than the clock on the wall: what else the machine does must not look like growth.
    """
    with running() as (app, caller):
        definition = publish(app, caller, scatter())

        def run(count: int) -> float:
            began, used = time.perf_counter(), time.process_time()
            asked = TriggerRequest(input={"items": list(range(count))})
            run_id = app.deps.triggers.trigger(caller, definition, asked).run_id
            while not (status := RunStatus(app.deps.runs.summary(caller, run_id).status)).terminal:
                if time.perf_counter() - began > DEADLINE_S:
                    raise TimeoutError(f"{count} items did not end in {DEADLINE_S} s")
                time.sleep(0.02)
            seconds = time.process_time() - used
            gathered: Any = app.deps.runs.node_output(caller, run_id, "all")
            if status is not RunStatus.COMPLETED or [each["n"] for each in gathered["results"]] != list(range(count)):
                raise RuntimeError(f"run {run_id} ended as {status} with other results than its items")
            return seconds

        run(FEW // 10)
        return min(run(few) for _ in range(3)), min(run(many) for _ in range(2)), _peak_megabytes()


def _peak_megabytes() -> int:
    # Not ru_maxrss: that one outlives exec, and would show the memory of whoever started this process.
    status = Path("/proc/self/status").read_text()
    peak = next(line for line in status.splitlines() if line.startswith("VmHWM:"))
    return int(peak.split()[1]) // 1024


if __name__ == "__main__":
    print(json.dumps(seconds_and_megabytes()))
