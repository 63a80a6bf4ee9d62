"""The sizes that Ductor promises: long chains, broad fans and lattices complete, in ticks that stay bounded."""

from __future__ import annotations

from tests.simulation.scene import Scene, action, edge, flow, settled, shape

from ductor.model import transition as tr
from ductor.model.definition import Definition
from ductor.model.enums import EdgeType, Join, OnError


def lattice(rows: int, columns: int) -> Definition:
    """Diamonds side by side and below each other: each step leads to two of the next row."""
    parts = [action(f"n{row}_{column}", join=Join.ALL) for row in range(rows) for column in range(columns)]
    edges = [
        edge(f"n{row}_{column}", f"n{row + 1}_{(column + step) % columns}")
        for row in range(rows - 1)
        for column in range(columns)
        for step in (0, 1)
    ]
    return flow(*parts, *edges)


def test_a_chain_of_500_steps_completes() -> None:
    scene = settled(flow(*[action(f"s{n}") for n in range(500)], *[edge(f"s{n}", f"s{n + 1}") for n in range(499)]))
    assert scene.status == "completed"
    assert all(scene.effects(f"s{n}") == 1 for n in (0, 250, 499))


def test_a_fan_out_of_500_steps_with_5000_edges_completes() -> None:
    heads, rows, columns = 1, 10, 49
    parts = [action("head"), *[action(f"n{row}_{column}") for row in range(rows) for column in range(columns)]]
    edges = [edge("head", f"n0_{column}") for column in range(columns)]
    for row in range(rows - 1):
        for column in range(columns):
            edges += [edge(f"n{row}_{column}", f"n{row + 1}_{(column + step) % columns}") for step in range(11)]
    parts += [action(f"tail{n}") for n in range(500 - len(parts))]
    edges += [edge("head", f"tail{n}") for n in range(500 - heads - rows * columns)]
    edges += [edge(f"n0_{n % columns}", f"n9_{n // columns}", EdgeType.DONE) for n in range(5_000 - len(edges))]
    scene = settled(flow(*parts, *edges))
    assert (len(parts), len(edges), scene.status) == (500, 5_000, "completed")
    assert len(scene.world.ledger.effects) == 500


def test_a_lattice_of_500_steps_completes() -> None:
    scene = settled(lattice(50, 10))
    assert scene.status == "completed"
    assert len(scene.world.ledger.effects) == 500


def test_a_chain_of_500_steps_inside_the_coordinator_completes() -> None:
    parts = [shape(f"s{n}", f'"{"x" * 200}"') for n in range(500)]
    scene = settled(flow(*parts, *[edge(f"s{n}", f"s{n + 1}") for n in range(499)]))
    assert scene.status == "completed"


def test_500_steps_with_the_largest_inline_values_that_end_together_complete() -> None:
    long = "r" * 58
    scene = Scene(flow(*[action(f"{long}{n}", "big", bytes=180, v="x" * 30) for n in range(500)]))
    while scene.deliver(250) or scene.work():
        pass
    assert (scene.status, scene.faults) == ("completed", [])


def test_hundreds_of_requests_in_one_batch_are_all_answered() -> None:
    scene = Scene(flow(action("a")))
    for n in range(150):
        scene.control("pause", f"p{n}")
        scene.control("resume", f"r{n}")
    scene.deliver(400)
    assert scene.faults == []
    audited = [step for step in scene.world.history(scene.run_id) if isinstance(step, tr.OperatorAudited)]
    assert [step.outcome for step in audited] == ["applied"] * 300


def test_a_tick_hands_out_no_more_than_its_bound_and_goes_on_by_itself() -> None:
    scene = Scene(flow(*[action(f"s{n}", on_error=OnError.CONTINUE) for n in range(250)]))
    scene.deliver()
    handed = sum(isinstance(step, tr.NodeScheduled) for step in scene.world.history(scene.run_id))
    assert 0 < handed < 250
    scene.settle()
    assert (scene.status, scene.faults) == ("completed", [])
