"""Runs one seed again and prints what happened, event by event: `python -m ductor.testing.replay SEED`."""

from __future__ import annotations

import argparse
import sys
import traceback

import msgspec

from ductor.model.run import LastTick
from ductor.testing.chaos import PROFILES
from ductor.testing.invariants import history_rows
from ductor.testing.seeds import BrokenPromiseError, run_seed
from ductor.testing.world import World


def main(arguments: list[str] | None = None) -> int:
    """0 when every promise holds, 1 with the trace when one is broken."""
    parser = argparse.ArgumentParser(prog="python -m ductor.testing.replay", description=__doc__)
    parser.add_argument("seed", type=int)
    parser.add_argument("--profile", choices=sorted(PROFILES), default="storm")
    parser.add_argument("--quiet", action="store_true", help="no trace, only the result")
    chosen = parser.parse_args(arguments)
    worlds: list[World] = []
    try:
        run_seed(chosen.seed, chosen.profile, traced=True, keep=worlds)
    except BrokenPromiseError as error:
        if not chosen.quiet:
            show(worlds[0])
        if error.__cause__ is not None:
            sys.stdout.write("".join(traceback.format_exception(error.__cause__)))
        sys.stdout.write(f"\n{error}\n")
        return 1
    if not chosen.quiet:
        show(worlds[0])
    sys.stdout.write(f"\nseed {chosen.seed}, profile {chosen.profile}: every promise holds\n")
    return 0


def show(world: World) -> None:
    """The definitions, the trace, and each run's history."""
    lines = [*world.ledger.trace, "", str(world.chaos.chances)]
    for run_id in world.run_ids():
        state = world.state(run_id)
        lines += ["", f"run {run_id}: {state.status.value}"]
        lines += [f"  {step}" for step in world.graph(run_id).definition.steps]
        lines += [f"  {edge}" for edge in world.graph(run_id).definition.edges]
        for row in history_rows(world, state):
            lines.append(f"  commit {row.version} at {row.at}: {', '.join(row.applied)}")
            lines += [f"    {number} {transition}" for number, transition in enumerate(row.transitions, row.seq)]
        lines += [f"  {attempt}" for attempt in world.attempts(run_id)]
        lines.append(f"  {msgspec.json.encode(msgspec.structs.replace(state, last=LastTick())).decode()[:4000]}")
    sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    sys.exit(main())
