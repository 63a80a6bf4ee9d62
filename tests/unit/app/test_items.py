"""Item scopes in use: pages stored with their header, read back page by page, and by the id of one node."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from ductor.app.headers import HEAD, run_pk
from ductor.app.library import Library
from ductor.app.pages import StaleRunError, attach
from ductor.app.runs import Runs
from ductor.app.tenants import Tenants
from ductor.model.definition import Definition, Edge, Step
from ductor.model.enums import StepType
from ductor.model.errors import RefusedError
from ductor.testing import doubles
from ductor.testing.invariants import violations
from ductor.testing.schedule import Client, Schedule
from ductor.testing.world import World


def definition(items: str = "TRIGGER.payload.items", **scatter: Any) -> Definition:
    """split -> all, and in each item inner -> leaf -> leaves."""
    return Definition(
        family_slug="f",
        steps=(
            Step(ref="split", type=StepType.SCATTER, args={"items_expr": items, **scatter}),
            Step(ref="inner", type=StepType.SCATTER, args={"items_expr": "[ITEM, ITEM + 1]"}),
            Step(ref="leaf", type=StepType.ACTION, action=doubles.OK, args={"v": "${{ ITEM }}"}),
            Step(ref="leaves", type=StepType.GATHER, args={}),
            Step(ref="all", type=StepType.GATHER, args={"output_expr": "STEPS.leaves.output.count"}),
        ),
        edges=tuple(
            Edge(source_ref=one, target_ref=two)
            for one, two in (("split", "inner"), ("inner", "leaf"), ("leaf", "leaves"), ("leaves", "all"))
        ),
    )


class Keyed(Tenants):
    """Tenants of which every one has the same key."""

    def redaction_key(self, tenant: str) -> bytes:
        return b"key"


class Finished:
    """A world in which one run over `count` items has ended."""

    def __init__(self, count: int) -> None:
        self.world = World()
        with self.world.limits():
            client = Client(self.world.publish(definition()), {"items": list(range(count))}, "k")
            Schedule(self.world, [client]).drain()
        assert client.run_id is not None
        self.run_id = client.run_id
        tenants = Keyed(self.world.table, self.world.clock, self.world.ids)
        self.runs = Runs(
            table=self.world.table,
            payloads=self.world.payloads,
            library=Library(self.world.table),
            tenants=tenants,
        )

    def pages(self, scope: str, limit: int) -> Iterator[list[str]]:
        cursor: str | None = None
        while True:
            page = self.runs.items(self.world.caller, self.run_id, scope, limit, cursor)
            yield list(page.nodes)
            cursor = page.next_cursor
            if cursor is None:
                return


@pytest.fixture(scope="module")
def finished() -> Finished:
    return Finished(5)


def test_a_nested_scatter_keeps_every_promise(finished: Finished) -> None:
    assert violations(finished.world, final=True) == []
    assert finished.world.output(finished.run_id, "all")["results"] == [2, 2, 2, 2, 2]


def test_the_header_holds_no_page(finished: Finished) -> None:
    item = finished.world.table.get(run_pk(finished.run_id), HEAD)
    assert item is not None
    assert b"leaf@" not in item.body.split(b'"last":')[0]


def test_items_are_read_page_by_page_in_order(finished: Finished) -> None:
    shown = list(finished.pages("leaf@*", 4))
    assert [len(page) for page in shown] == [4, 4, 2]
    assert [node for page in shown for node in page] == [f"leaf@{i}.{j}" for i in range(5) for j in range(2)]


@pytest.mark.parametrize(
    ("scope", "nodes"),
    [
        ("inner@*", [f"inner@{i}" for i in range(5)]),
        ("leaf@3.*", ["leaf@3.0", "leaf@3.1"]),
        ("leaf@3.1", ["leaf@3.1"]),
        ("leaf@9.*", []),
    ],
)
def test_a_scope_names_all_items_or_some(finished: Finished, scope: str, nodes: list[str]) -> None:
    assert [node for page in finished.pages(scope, 50) for node in page] == nodes


@pytest.mark.parametrize("scope", ["leaf", "leaf@", "leaf@x.*", "leaf@1", "leaf@1.2.3", "leaf@²", "leaf@" + "1." * 200])
def test_another_pattern_is_refused(finished: Finished, scope: str) -> None:
    with pytest.raises(RefusedError) as refused:
        finished.runs.items(finished.world.caller, finished.run_id, scope, None, None)
    assert refused.value.violations[0].code == "SCOPE_INVALID"


@pytest.mark.parametrize("scope", ["split@*", "nobody@*"])
def test_a_step_in_no_scatter_has_no_items(finished: Finished, scope: str) -> None:
    with pytest.raises(RefusedError):
        finished.runs.items(finished.world.caller, finished.run_id, scope, None, None)


def test_one_items_output_is_read_by_its_id(finished: Finished) -> None:
    output: Any = finished.runs.node_output(finished.world.caller, finished.run_id, "leaf@2.1")
    assert output["v"] == 3


def test_a_page_newer_than_the_header_is_never_used(finished: Finished) -> None:
    state = finished.world.state(finished.run_id)
    state.loaded = {}
    state.version = 1
    attach(finished.world.table, state)
    with pytest.raises(StaleRunError):
        state.loaded[0]
