"""A templated connection through crashes and retries: rendered once, the same for every attempt and delivery."""

from __future__ import annotations

import pytest
from tests.simulation.scene import Scene, action, edge, flow

from ductor.model.definition import Retry
from ductor.testing.actors import LEASE_MS

RETRY = Retry(max_attempts=4, backoff_ms=5_000, jitter=0.0)
CALLS = flow(
    action("a", "fail_n", RETRY, n=2, connection_ref="at-${{ RUN.now }}", connection_ref_mode="direct"),
    action("b", connection_ref="named", connection_ref_mode="environment"),
    edge("a", "b"),
)


def refs(scene: Scene, node: str) -> list[str]:
    return [one.task.connection_ref for one in scene.world.attempts(scene.run_id) if one.task.node == node]


@pytest.mark.parametrize("point", ["coordinator.before_commit", "coordinator.after_commit", "coordinator.after_send"])
def test_a_crash_at_any_boundary_keeps_the_connection_of_the_first_attempt(point: str) -> None:
    scene = Scene(CALLS)
    scene.crash(point)
    scene.settle()
    assert (scene.status, scene.faults) == ("completed", [])
    first = refs(scene, "a")
    assert len(first) == 3
    assert len(set(first)) == 1
    assert first[0].startswith("at-")
    assert refs(scene, "b") == ["named"]


def test_a_lost_worker_leaves_the_same_connection_to_the_next_one() -> None:
    scene = Scene(CALLS)
    scene.deliver()
    scene.world.workers[0].claim(100)
    before = refs(scene, "a")
    scene.clock.advance(LEASE_MS + 1)
    scene.settle()
    assert scene.status == "completed"
    assert set(refs(scene, "a")) == set(before)


def test_a_redrive_renders_anew() -> None:
    scene = Scene(flow(action("a", "boom", retryable=False, connection_ref="at-${{ RUN.now }}")))
    scene.settle()
    assert scene.status == "failed"
    scene.clock.advance(60_000)
    scene.control("redrive")
    scene.settle()
    first, second = refs(scene, "a")
    assert first != second
