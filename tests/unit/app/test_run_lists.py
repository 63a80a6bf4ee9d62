"""Lists of runs: what each filter lets through, and pages that stay stable."""

from __future__ import annotations

import pytest
from tests.unit.app.refusal import refused
from tests.unit.app.stored_runs import DOCUMENT, change, start
from tests.unit.app.world import World

from ductor.app.admission import Label
from ductor.app.run_filter import RunFilter, read_filter
from ductor.model.enums import RunStatus
from ductor.model.errors import ErrorCode


class TestList:
    def listed(self, world: World, **query: str) -> list[str]:
        wanted = read_filter([(name.replace("__", "."), value) for name, value in query.items()], world.clock.now_ms())
        return [run.run_id for run in world.runs.list_runs(world.caller, wanted, None, None).items]

    def test_filters(self, world: World) -> None:
        flow, router = world.published(DOCUMENT), world.published({**DOCUMENT, "family_slug": "lead-router"})
        one = start(world, flow, subject_type="lead", subject_id="7", correlation_labels=(Label("order", "o-1"),))
        world.clock.advance(3_600_000)
        two = start(world, router)
        change(world, two, status=RunStatus.COMPLETED, finished_at=world.clock.now_ms())
        world.clock.advance(60_000)
        assert self.listed(world) == [two, one]
        assert self.listed(world, workflow_type="lead_router") == [two]
        assert self.listed(world, workflow_type="order-flow") == [one]
        assert self.listed(world, status="completed") == [two]
        assert self.listed(world, active_only="true") == [one]
        assert self.listed(world, active_only="true", status="completed") == []
        assert self.listed(world, subject_type="lead", subject_id="7") == [one]
        assert self.listed(world, label__order="o-1") == [one]
        assert self.listed(world, attr__ductor__correlation__order="o-1") == [one]
        assert self.listed(world, label__order="o-2") == []
        assert self.listed(world, started_after="-30m") == [two]
        assert self.listed(world, started_before="-30m") == [one]
        assert self.listed(world, started_after="2026-01-01T00:30:00Z") == [two]
        assert self.listed(world, root_run_id=one) == [one]
        assert self.listed(world, parent_run_id=one) == []

    @pytest.mark.parametrize(
        ("name", "value", "code"),
        [
            ("status", "finished", "FIELD_INVALID"),
            ("active_only", "maybe", "FIELD_INVALID"),
            ("started_after", "yesterday", "FIELD_INVALID"),
            ("started_after", "-1y", "FIELD_INVALID"),
            ("subject_id", "x" * 257, "FIELD_INVALID"),
            ("colour", "red", "FIELD_UNKNOWN"),
        ],
    )
    def test_odd_filters_are_refused_by_name(self, world: World, name: str, value: str, code: str) -> None:
        with refused(ErrorCode.INVALID_ARGUMENT, code, field=name):
            read_filter([(name, value)], world.clock.now_ms())

    @pytest.mark.parametrize(
        "value", ["0001-01-01", "9999-12-31T23:59:59Z", "-999999999d", "1970-01-01T00:00:00+14:00"]
    )
    def test_far_times_are_no_error(self, world: World, value: str) -> None:
        self.listed(world, started_after=value, started_before=value)

    @pytest.mark.parametrize("active_only", [False, True])
    def test_pages_over_all_shards_in_order(self, world: World, active_only: bool) -> None:
        flow = world.published(DOCUMENT)
        runs = []
        for number in range(23):
            world.clock.advance(number % 2)
            runs.append(start(world, flow))
        seen: list[str] = []
        cursor: str | None = None
        while True:
            page = world.runs.list_runs(world.caller, RunFilter(active_only=active_only), 5, cursor)
            seen += [run.run_id for run in page.items]
            world.clock.advance(1)
            start(world, flow)
            cursor = page.next_cursor
            if cursor is None:
                break
        assert seen == list(reversed(runs))

    def test_the_last_full_page_has_no_next_one(self, world: World, run_id: str) -> None:
        assert world.runs.list_runs(world.caller, RunFilter(), 1, None).next_cursor is None

    def test_a_cursor_is_for_its_filter_only(self, world: World, run_id: str) -> None:
        start(world, world.header(run_id).origin.definition_id)
        cursor = world.runs.list_runs(world.caller, RunFilter(), 1, None).next_cursor
        with refused(ErrorCode.INVALID_ARGUMENT, "CURSOR_INVALID"):
            world.runs.list_runs(world.caller, RunFilter(active_only=True), 1, cursor)

    def test_labels_show_under_their_reserved_attributes(self, world: World) -> None:
        run_id = start(world, world.published(DOCUMENT), correlation_labels=(Label("order", "o-1"),))
        change(world, run_id, attributes={"region": "eu"})
        summary = world.runs.summary(world.caller, run_id)
        assert summary.attributes == {
            "region": "eu",
            "ductor.correlation_labels": [{"key": "order", "id": "o-1"}],
            "ductor.correlation.order": "o-1",
        }
        assert summary.correlation_labels == (Label("order", "o-1"),)
