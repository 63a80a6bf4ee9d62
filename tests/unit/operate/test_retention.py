"""Runs that nobody keeps any longer go with all that is theirs, whoever dies meanwhile; what somebody needs stays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from tests.simulation.family import Family, act, hold, sub
from tests.unit.app.refusal import refused

from ductor.app.admission import Label, TriggerRequest
from ductor.app.entitlements import Entitlements, EntitlementStore
from ductor.app.headers import mark_expiring
from ductor.app.payloads import PayloadStore
from ductor.app.retention import AGAIN_MS, DAY_MS, Retention
from ductor.app.run_filter import RunFilter
from ductor.app.run_list import find_runs
from ductor.model.definition import Effects
from ductor.model.enums import RunStatus
from ductor.model.errors import ErrorCode
from ductor.model.run import HistoryRow
from ductor.ports import Conflict, Item, Op, Page, Put
from ductor.testing.chaos import Crash
from ductor.testing.world import TENANT

DAYS = 30
BIG = "x" * 9_000


class Mortal:
    """The stores of a process that dies before or after its n-th change of them."""

    def __init__(self, family: Family, dies_at: int = 0) -> None:
        self._table, self._blobs = family.world.table, family.world.blobs
        self.changes = 0
        self._dies_at = dies_at

    def __getattr__(self, name: str) -> Any:
        return getattr(self._table, name)

    def write(self, ops: Sequence[Op]) -> Conflict | None:
        self._count()
        lost = self._table.write(ops)
        self._count()
        return lost

    def remove(self, keys: Sequence[tuple[str, str]]) -> None:
        """Not at once: a death between any two rows leaves some."""
        for key in keys:
            self._count()
            self._table.remove([key])
        self._count()

    def _count(self) -> None:
        self.changes += 1
        if self.changes == self._dies_at:
            raise Crash(f"change {self.changes}")

    @property
    def blobs(self) -> Any:
        return MortalBlobs(self, self._blobs)


class MortalBlobs:
    def __init__(self, life: Mortal, blobs: Any) -> None:
        self._life, self._blobs = life, blobs

    def __getattr__(self, name: str) -> Any:
        return getattr(self._blobs, name)

    def delete(self, key: str) -> None:
        self._life._count()
        self._blobs.delete(key)
        self._life._count()


def keep(family: Family, days: int = DAYS) -> None:
    EntitlementStore(family.world.table).set(TENANT, Entitlements(retention_days=days))


def sweep(family: Family, dies_at: int = 0) -> Mortal:
    """One sweep; by the process that dies at a change, if one is named."""
    life: Any = Mortal(family, dies_at)
    Retention(table=life, payloads=PayloadStore(life, life.blobs), clock=family.world.clock).sweep()
    return life  # type: ignore[no-any-return]


def wait(family: Family, days: float = DAYS + 1) -> None:
    family.world.clock.advance(int(days * DAY_MS))


def sweep_out(family: Family) -> None:
    """Sweeps for as long as the deepest family takes."""
    for _ in range(4):
        sweep(family)
        family.world.clock.advance(AGAIN_MS + 1)


def traces(family: Family, run_id: str) -> list[tuple[str, str]]:
    """Where anything of a run is left. A closed waiter row goes by itself."""
    world = family.world
    rows = [(row.pk, row.sk) for row in world.table.rows() if row.ttl is None]
    values = [("blob", key) for key in world.blobs.keys("", 1_000)]
    return [one for one in (*rows, *values) if run_id in "".join(one)]


def rich() -> Family:
    """A run with everything: a key, labels, attributes, large values, attempts, a child, a hook, an audit trail."""
    family = Family()
    family.add("small", act("only", args={"v": BIG}))
    big = act("big", args={"v": BIG}, effects=Effects(visibility={"region": '"north"'}))
    hooks = {"on_completed": {"action": "double.ok", "args": {"v": BIG}}}
    family.add("rich", big, sub("child", "small"), hooks=hooks)
    labels = (Label("order", "o-1"),)
    request = TriggerRequest(input={"text": BIG}, idempotency_key="key", correlation_labels=labels, subject_id="s")
    family.root = family.world.triggers.trigger(family.world.caller, family.ids["rich"], request).run_id
    family.world.control(family.root, "pause", "p")
    family.work(3)
    family.world.control(family.root, "resume", "r")
    family.rest()
    assert family.state().status is RunStatus.COMPLETED
    return family


def test_a_run_goes_with_all_that_is_its_own_and_its_family_with_it() -> None:
    family = rich()
    runs = family.world.run_ids()
    assert len(runs) == 3
    keep(family)
    wait(family, DAYS - 1)
    sweep_out(family)
    assert all(traces(family, run_id) for run_id in runs)
    wait(family, 2)
    sweep_out(family)
    assert [traces(family, run_id) for run_id in runs] == [[], [], []]
    assert find_runs(family.world.table, TENANT, RunFilter(), None, None).items == ()
    assert not [row for row in family.world.table.rows() if row.pk.startswith(("RL#", "RA#", "RO#", "I#", "CS#"))]


def test_a_look_that_an_earlier_release_left_half_way_begins_anew() -> None:
    """It went through an index by status, where a completed run has no entry any more."""
    family = Family()
    family.add("small", act("only"))
    family.start("small")
    family.rest()
    keep(family)
    wait(family)
    row = family.world.table.get(f"N#{TENANT}", "RETENTION")
    assert row is not None
    old = msgspec.structs.replace(row, body=b'{"place":7,"cursor":"of-the-index-by-status"}')
    family.world.table.write((Put(old, row.version),))
    sweep(family)
    assert traces(family, family.root) == []


def test_the_key_of_a_run_that_has_gone_is_free() -> None:
    family = rich()
    keep(family)
    wait(family)
    sweep_out(family)
    request = TriggerRequest(input={}, idempotency_key="key")
    again = family.world.triggers.trigger(family.world.caller, family.ids["rich"], request)
    assert not again.repeated


def test_whoever_dies_at_any_change_leaves_what_the_next_sweep_removes() -> None:
    family = rich()
    keep(family)
    wait(family)
    whole = sweep(family).changes
    assert whole > 20
    for dies_at in range(1, whole + 1, 2 if whole > 60 else 1):
        family = rich()
        runs = family.world.run_ids()
        keep(family)
        wait(family)
        with pytest.raises(Crash):
            sweep(family, dies_at)
        sweep_out(family)
        assert [traces(family, run_id) for run_id in runs] == [[], [], []], dies_at


def test_a_run_that_is_half_removed_counts_as_gone() -> None:
    family = rich()
    keep(family)
    wait(family)
    child = family.one("small").run_id
    for dies_at in range(1, 100):
        with pytest.raises(Crash):
            sweep(family, dies_at)
        item = family.world.table.get(f"R#{child}", "HEAD")
        if item is None or item.i2 is None:
            break
    listed = find_runs(family.world.table, TENANT, RunFilter(workflow_type="small"), None, None)
    assert listed.items == ()
    with refused(ErrorCode.NOT_FOUND, "RUN_NOT_FOUND"):
        family.world.control(child, "redrive", "late")


def test_a_run_that_has_not_ended_is_never_touched() -> None:
    family = Family()
    family.add("long", act("first", args={"v": BIG}), hold())
    family.start("long")
    family.work()
    keep(family, 1)
    before = traces(family, family.root)
    wait(family, 400)
    sweep_out(family)
    assert traces(family, family.root) == before
    family.rest()
    assert family.state().status is RunStatus.COMPLETED


def test_the_child_of_a_run_that_lives_stays_and_a_parent_stays_while_its_child_lives() -> None:
    family = Family()
    family.add("small", act("only", args={"v": BIG}))
    family.add("forever", hold())
    leave = sub("leave", "forever", wait=False, parent_close_policy="abandon")
    family.add("parent", sub("child", "small"), leave)
    family.add("outer", sub("inner", "parent"), hold())
    family.start("outer")
    family.work()
    keep(family, 1)
    wait(family, 2)
    sweep_out(family)
    for name in ("small", "parent"):
        assert family.one(name).status is RunStatus.COMPLETED
        assert traces(family, family.one(name).run_id)
    runs = family.world.run_ids()
    family.rest()
    wait(family, 2)
    sweep_out(family)
    assert not any(traces(family, run_id) for run_id in runs)


def test_a_fork_does_not_need_its_source() -> None:
    family = Family()
    broken = act("late", "double.boom", args={"v": 1, "retryable": False, "code": "BROKEN"})
    family.add("flow", act("early", args={"v": BIG}), broken)
    family.start("flow", {"text": BIG})
    family.rest()
    source = family.root
    wait(family, DAYS - 1)
    seq = family.state().seq - 2
    fork = family.world.reset(source, seq, "f")
    family.rest()
    keep(family)
    wait(family, 2)
    sweep_out(family)
    assert traces(family, source) == [] or all(fork in "".join(one) for one in traces(family, source))
    state = family.state(fork)
    assert family.world.value(fork, state.origin.input) == {"text": BIG}
    assert family.world.output(fork, "early") is not None


def test_without_days_nothing_goes_and_the_sweeper_forgets_the_tenant() -> None:
    family = rich()
    keep(family)
    keep(family, 0)
    wait(family, 1_000)
    sweep_out(family)
    assert traces(family, family.root)
    assert [row for row in family.world.table.rows() if row.sk == "RETENTION"] == []


def test_one_sweep_is_bounded_and_the_next_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ductor.app.retention.MAX_OPS_PER_SWEEP", 60)
    family = rich()
    runs = family.world.run_ids()
    keep(family)
    wait(family)
    assert sweep(family).changes < 120
    assert any(traces(family, run_id) for run_id in runs)
    for _ in range(60):
        sweep(family)
        family.world.clock.advance(AGAIN_MS // 10)
    assert [traces(family, run_id) for run_id in runs] == [[], [], []]


def test_a_run_that_cannot_be_read_keeps_no_other_from_being_removed() -> None:
    family = rich()
    broken = Item(pk="R#broken", sk="HEAD", version=7, body=b"of another release")
    family.world.table.write([Put(mark_expiring(broken, 0))])
    keep(family)
    wait(family)
    sweep_out(family)
    assert traces(family, family.root) == []
    assert family.world.table.get("R#broken", "HEAD") is not None


def test_a_long_history_is_looked_through_within_the_bounds_of_a_sweep(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ductor.app.retention.MAX_OPS_PER_SWEEP", 300)
    family = rich()
    pk = f"R#{family.root}"
    last = HistoryRow(0, 0, 0, (), ())
    for number in range(2_000, 4_000):
        row = Item(pk=pk, sk=f"T#{number:010d}", body=msgspec.json.encode(last))
        family.world.table.write([Put(row)])
    keep(family)
    wait(family)
    queries: list[str] = []
    query = family.world.table.query

    def counted(pk: str, **wanted: Any) -> Page:
        queries.append(pk)
        return query(pk, **wanted)

    monkeypatch.setattr(family.world.table, "query", counted)
    most = 0
    for _ in range(60):
        sweep(family)
        most = max(most, queries.count(pk))
        queries.clear()
        family.world.clock.advance(AGAIN_MS // 10)
    assert traces(family, family.root) == []
    assert most < 30


def test_others_runs_stay() -> None:
    family = rich()
    keep(family)
    wait(family)
    family.start("small")
    family.rest()
    sweep_out(family)
    assert family.state().status is RunStatus.COMPLETED
    assert traces(family, family.root)
