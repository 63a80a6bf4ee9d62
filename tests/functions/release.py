"""Stored rows of runs, as one release writes them: `python -m tests.functions.release` keeps those of this one.

A kept file is never written again: it is what later releases must be able to read.
"""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import yaml
from tests.functions.definitions import chain
from tests.functions.world import SECOND, AwsWorld

from ductor import __version__
from ductor.app.headers import run_pk
from ductor.app.library import definition_pk

GOLDEN = Path(__file__).with_name("golden")
_EXAMPLE = Path(__file__).parents[2] / "events" / "payment_and_shipment.yaml"


def runs(world: AwsWorld) -> list[str]:
    """A run that completed, one that failed after retries, and one that waits for events."""
    fails = chain(1, "fails")
    fails["steps"][0] |= {"action": "core.fail", "args": {"message": "on purpose"}}
    fails["steps"][0] |= {"retry_max_attempts": 2, "retry_backoff_ms": 1_000}
    waits = yaml.safe_load(_EXAMPLE.read_text())["definition"]
    found = [
        world.trigger(world.publish(chain(3)), idempotency_key="once"),
        world.trigger(world.publish(fails)),
        world.trigger(world.publish(waits), input={"order": "o-1", "amount": 100}),
    ]
    for _ in range(3):
        world.pump()
        world.clock.advance(5 * SECOND)
    return found


def rows(world: AwsWorld, run_id: str) -> dict[str, Any]:
    """Every row of a run, its body as the JSON that it is, and those of its definition as they are stored."""
    table = world.emulator.table
    definition = table.query(definition_pk(world.tenant, world.header(run_id).origin.definition_id)).items
    found = [{"sk": item.sk, "body": json.loads(item.body or b"null")} for item in table.query(run_pk(run_id)).items]
    return {"rows": found, "definition": {item.sk: base64.b64encode(item.body).decode() for item in definition}}


def main() -> None:
    world = AwsWorld()
    try:
        kept = {run_id: rows(world, run_id) for run_id in runs(world)}
    finally:
        world.close()
    GOLDEN.mkdir(exist_ok=True)
    with (GOLDEN / f"release-{__version__}.json").open("x") as file:
        json.dump(kept, file, indent=1, sort_keys=True)
        file.write("\n")


if __name__ == "__main__":
    main()
