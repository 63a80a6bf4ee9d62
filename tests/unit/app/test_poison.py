"""Hopeless runs: one that is being removed is not brought back as a stalled one."""

from __future__ import annotations

from typing import Any

from ductor.app.headers import HEAD, is_expiring, mark_expiring
from ductor.lambdas.poison import Poison
from ductor.ports import Item, Put
from ductor.testing.memory import MemoryTable


class NoStalls:
    def begin(self, *_args: Any) -> bool:
        raise AssertionError("the run would count as stalled, and never go")


def test_a_run_that_is_being_removed_is_not_stalled() -> None:
    table, stalls = MemoryTable(), NoStalls()
    table.write([Put(mark_expiring(Item(pk="R#run", sk=HEAD, version=3, body=b"{}"), 1))])
    assert not Poison(table, stalls).stall("run", [], "it died")  # type: ignore[arg-type]
    header = table.get("R#run", HEAD)
    assert header is not None
    assert is_expiring(header)
