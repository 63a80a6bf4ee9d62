"""Forks that never come to be leave nothing behind, and large ones hold up nobody."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from unittest.mock import patch

import pytest
from tests.simulation.scene import Scene, action, edge, flow
from tests.simulation.test_scopes import repeated
from tests.unit.app.refusal import refused
from tests.unit.operate.test_reset import ended

from ductor.app.fork_values import PORTION
from ductor.app.headers import HEAD, run_pk
from ductor.app.reset import ResetRequest, Resets
from ductor.app.retention import QUIET_MS, UNBORN_MS, Retention
from ductor.model.errors import ErrorCode
from ductor.model.lineage import fork_run_id
from ductor.model.payload import blob_prefix
from ductor.ports import UnavailableError
from ductor.testing.chaos import Crash
from ductor.testing.invariants import violations

# Two values of the source: one in a row, one among the blobs.
LARGE = flow(action("a", "big", bytes=6_000), action("b", "big", bytes=20_000), action("c"), edge("a", "b"))


def ran() -> Scene:
    scene = Scene(LARGE)
    scene.settle()
    return scene


def fork_of(scene: Scene) -> str:
    return fork_run_id(scene.run_id, "f")


def left(scene: Scene) -> list[str]:
    """What the tables know of the fork."""
    rows = [row.sk for row in scene.world.table.rows() if row.pk == run_pk(fork_of(scene))]
    return [*rows, *scene.world.blobs.keys(blob_prefix(fork_of(scene)), 10)]


def ask(scene: Scene) -> str:
    return scene.world.reset(scene.run_id, ended(scene, "b"), "f")


def sweep(scene: Scene) -> int:
    return Retention(table=scene.world.table, payloads=scene.world.payloads, clock=scene.clock).sweep()


def swept(scene: Scene) -> None:
    """What the sweeper does when a fork has been in the making for too long."""
    scene.clock.advance(UNBORN_MS + 1)
    sweep(scene)
    scene.clock.advance(QUIET_MS + 1)
    sweep(scene)


@contextmanager
def too_large() -> Iterator[None]:
    with patch("ductor.app.reset.MAX_HEADER_BYTES", 10), refused(ErrorCode.FAILED_PRECONDITION, "STATE_TOO_LARGE"):
        yield


@contextmanager
def dies_before_the_header() -> Iterator[None]:
    with patch.object(Resets, "_publish", side_effect=Crash), pytest.raises(Crash):
        yield


@pytest.mark.parametrize("fails", [too_large, dies_before_the_header])
def test_what_a_fork_has_stored_that_never_came_to_be_is_removed(fails: object) -> None:
    scene = ran()
    with fails():  # type: ignore[operator]
        ask(scene)
    assert len(left(scene)) >= 3
    sweep(scene)
    assert len(left(scene)) >= 3  # somebody may still be at it
    swept(scene)
    assert left(scene) == []
    assert violations(scene.world, final=True) == []


def test_a_fork_in_the_making_is_in_no_list_and_nobodys() -> None:
    scene = ran()
    with dies_before_the_header():
        ask(scene)
    assert scene.world.run_ids() == [scene.run_id]
    with refused(ErrorCode.NOT_FOUND, "RUN_NOT_FOUND"):
        scene.world.control(fork_of(scene), "cancel", "r1")


def test_who_asks_again_after_a_death_gets_the_fork_and_the_sweeper_leaves_it() -> None:
    scene = ran()
    with dies_before_the_header():
        ask(scene)
    assert ask(scene) == fork_of(scene)
    swept(scene)
    scene.settle()
    assert scene.world.state(fork_of(scene)).status == "completed"
    assert scene.world.output(fork_of(scene), "b") == scene.world.output(scene.run_id, "b")
    assert violations(scene.world, final=True) == []


def made_although_late(meanwhile: Callable[[Scene], None]) -> None:
    """The maker of a fork stops short of its header, `meanwhile` happens, and it goes on: the fork is whole."""
    scene = ran()
    publish, passing = Resets._publish, list[int]()

    def late(self: Resets, *args: object) -> bool:
        if not passing:
            passing.append(1)
            meanwhile(scene)
        return publish(self, *args)  # type: ignore[arg-type]

    with patch.object(Resets, "_publish", late):
        ask(scene)
    scene.settle()
    assert scene.world.output(fork_of(scene), "b") == scene.world.output(scene.run_id, "b")
    assert violations(scene.world, final=True) == []


def test_a_maker_that_is_taken_for_dead_begins_anew() -> None:
    made_although_late(swept)


def test_a_maker_taken_for_dead_does_not_put_its_header_upon_the_beginning_of_another() -> None:
    def another_begins(scene: Scene) -> None:
        swept(scene)
        with patch.object(Resets, "_first", side_effect=Crash), pytest.raises(Crash):
            ask(scene)  # begins, and dies before it has stored anything

    made_although_late(another_begins)


def test_who_begins_when_another_has_made_the_fork_leaves_it_as_it_is() -> None:
    scene = ran()
    begin, passing = Resets._begin, list[int]()

    def late(self: Resets, *args: object) -> int:
        if not passing:
            passing.append(1)
            ask(scene)
            scene.settle()
        return begin(self, *args)  # type: ignore[arg-type]

    with patch.object(Resets, "_begin", late):
        assert ask(scene) == fork_of(scene)
    assert scene.world.state(fork_of(scene)).status == "completed"
    assert violations(scene.world, final=True) == []


def test_while_what_is_left_is_being_removed_the_request_is_to_be_repeated() -> None:
    scene = ran()
    with dies_before_the_header():
        ask(scene)
    scene.clock.advance(UNBORN_MS + 1)
    with patch.object(Retention, "_remove_blobs", return_value=False):
        sweep(scene)
    with pytest.raises(UnavailableError, match="being removed"):
        ask(scene)
    sweep(scene)
    with pytest.raises(UnavailableError, match="being removed"):
        ask(scene)
    scene.clock.advance(QUIET_MS + 1)
    sweep(scene)
    ask(scene)
    scene.settle()
    assert scene.world.state(fork_of(scene)).status == "completed"


def test_a_sweep_that_is_still_removing_takes_nothing_of_a_fork_that_is_begun_again() -> None:
    scene = ran()
    with dies_before_the_header():
        ask(scene)
    scene.clock.advance(UNBORN_MS + 1)
    remove, passing = Retention._remove_rows, list[int]()

    def overtaken(self: Retention, *args: object) -> bool:
        if not passing:
            passing.append(1)
            sweep(scene)
            with contextlib.suppress(UnavailableError):
                ask(scene)
        return remove(self, *args)  # type: ignore[arg-type]

    with patch.object(Retention, "_remove_rows", overtaken):
        sweep(scene)
    swept(scene)
    ask(scene)
    scene.settle()
    assert scene.world.output(fork_of(scene), "a") == scene.world.output(scene.run_id, "a")
    assert violations(scene.world, final=True) == []


def test_a_large_fork_is_stored_in_portions() -> None:
    body = action("a", "big", bytes=20_000)
    scene = Scene(repeated(body), list(range(2 * PORTION)))
    scene.settle()
    puts, sizes = scene.world.payloads.__class__.put, [0]
    resets = scene.world.operations.resets
    batch = resets._unit.batch

    def counted(*args: object) -> None:
        sizes[-1] += 1
        puts(*args)  # type: ignore[arg-type]

    def begun() -> object:
        sizes.append(0)
        return batch()

    request = ResetRequest(request_id="f", transition_seq=ended(scene, "split"), preserve_outputs=("a",))
    with (
        patch.object(scene.world.payloads.__class__, "put", counted),
        patch.object(resets._unit, "batch", begun),
    ):
        resets.reset(scene.world.caller, scene.run_id, request)
    assert scene.world.table.get(run_pk(fork_of(scene)), HEAD) is not None
    assert sum(sizes) > 2 * PORTION
    assert sizes[0] == 0
    assert max(sizes) <= PORTION
