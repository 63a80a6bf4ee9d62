"""What a tick tells the world: once per transition that matters, under its number, and after everything else."""

from __future__ import annotations

import pytest

from ductor.engine.announcing import announcements
from ductor.model import transition as tr
from ductor.model.causation import ENDS, RUN_EVENT
from ductor.model.command import Announce, Announced
from ductor.model.enums import RunStatus
from ductor.model.run import LastTick, Origin, RunState


def state(seq: int) -> RunState:
    origin = Origin(
        run_id="r", tenant="t", definition_id="d", family_slug="f", definition_version=1, created_at=1, journey_id="r"
    )
    return RunState(origin=origin, seq=seq)


def test_a_tick_tells_all_that_happened_in_one_command() -> None:
    transitions = (tr.RunStarted(), tr.NodeCompleted("a"), tr.RunEnded(RunStatus.COMPLETED))
    told = (Announced("ductor.run.started", 8), Announced("ductor.run.completed", 10))
    assert announcements(state(10), transitions) == (Announce(told),)


def test_what_concerns_only_steps_is_not_told() -> None:
    assert announcements(state(3), (tr.NodeCompleted("a"), tr.WakeArmed(5))) == ()


@pytest.mark.parametrize("status", [status for status in RunStatus if status.terminal])
def test_every_end_has_a_name_that_counts_as_one(status: RunStatus) -> None:
    (command,) = announcements(state(1), (tr.RunEnded(status),))
    (told,) = command.told
    assert told == Announced(f"{RUN_EVENT}{status.value}", 1)
    assert told.name in ENDS


def test_the_first_tick_of_a_fork_tells_what_it_began_with() -> None:
    before = LastTick(seq=0, transitions=(tr.RunForked("source", 4), tr.RunStarted(), tr.WakeArmed(9)))
    (command,) = announcements(state(5), (tr.RunPaused(), tr.RunResumed()), before)
    assert [(told.name.removeprefix(RUN_EVENT), told.seq) for told in command.told] == [
        ("started", 2),
        ("paused", 4),
        ("resumed", 5),
    ]
