"""What differs between two definitions, and who may ask."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import pytest
from tests.unit.app.world import HELLO, World

from ductor.app.comparison import Change, compare
from ductor.app.installation import validation_context
from ductor.model.errors import RefusedError
from ductor.ports import Item

WAIT = {"ref": "pause", "type": "STEP_TYPE_WAIT", "args": {"duration": "2s"}}
EDGE = {"source_ref": "a", "target_ref": "b", "type": "EDGE_TYPE_SUCCESS"}


def test_a_document_does_not_differ_from_itself() -> None:
    assert compare(HELLO, HELLO).identical


def test_the_order_of_steps_does_not_count() -> None:
    assert compare({"steps": [WAIT, {"ref": "a"}]}, {"steps": [{"ref": "a"}, WAIT]}).identical


def test_steps_are_matched_by_ref_and_compared_by_field() -> None:
    later = {**WAIT, "args": {"duration": "5s"}, "title": "Rest"}
    found = compare({"steps": [WAIT, {"ref": "old"}]}, {"steps": [later, {"ref": "new"}]})
    assert [step["ref"] for step in found.steps_added] == ["new"]
    assert [step["ref"] for step in found.steps_removed] == ["old"]
    (changed,) = found.steps_changed
    assert changed.ref == "pause"
    assert [(field.field, field.change, field.before, field.after) for field in changed.fields] == [
        ("args.duration", Change.CHANGED, "2s", "5s"),
        ("title", Change.ADDED, None, "Rest"),
    ]


def test_an_edge_of_another_type_is_another_edge() -> None:
    found = compare({"edges": [EDGE]}, {"edges": [{**EDGE, "type": "EDGE_TYPE_ERROR"}]})
    assert (len(found.edges_added), len(found.edges_removed), found.edges_changed) == (1, 1, ())


def test_another_condition_changes_an_edge() -> None:
    (changed,) = compare({"edges": [EDGE]}, {"edges": [{**EDGE, "condition": "true"}]}).edges_changed
    assert (changed.source_ref, changed.target_ref, changed.fields[0].field) == ("a", "b", "condition")


@pytest.mark.parametrize(("before", "after"), [(1, True), (0, False), ([1], [True]), (1, 1.5)])
def test_values_are_compared_as_json(before: Any, after: Any) -> None:
    assert not compare({"variables": {"x": before}}, {"variables": {"x": after}}).identical


def test_a_draft_is_compared_with_the_newest_version(world: World) -> None:
    draft = world.definitions.create(world.caller, HELLO).definition
    first = world.definitions.publish(world.caller, draft.id).published
    assert world.definitions.diff(world.caller, draft.id).comparison.identical
    world.definitions.edit(world.caller, draft.id, {"expected_draft_revision": 1, "title": "Other"})
    found = world.definitions.diff(world.caller, draft.id)
    assert (found.before.id, found.after.id) == (first.id, draft.id)
    assert [field.field for field in found.comparison.fields] == ["title"]


def test_there_must_be_something_to_compare_with(world: World) -> None:
    draft = world.definitions.create(world.caller, HELLO).definition
    with pytest.raises(RefusedError) as refused:
        world.definitions.diff(world.caller, draft.id)
    assert refused.value.violations[0].code == "DIFF_BASE_MISSING"


def test_another_tenants_definition_is_no_base(world: World) -> None:
    stranger = world.stranger()
    theirs = world.definitions.create(stranger, HELLO).definition
    ours = world.published()
    with pytest.raises(RefusedError) as refused:
        world.definitions.diff(world.caller, ours, theirs.id)
    assert refused.value.error_code.value == "NOT_FOUND"


def test_upcoming_occurrences_are_those_of_the_schedule(world: World) -> None:
    draft = world.definitions.create(world.caller, {**HELLO, "schedule": {"rate": "5m"}}).definition
    now = world.clock.now_ms()
    upcoming = world.definitions.validate(world.caller, draft.id).upcoming
    assert len(upcoming) == 5
    assert all(at > now and at % 300_000 == 0 for at in upcoming)


def test_without_a_schedule_nothing_is_upcoming(world: World) -> None:
    assert world.definitions.validate(world.caller, world.published()).upcoming == ()


def rows_read(world: World, monkeypatch: pytest.MonkeyPatch, call: Callable[[], object]) -> Counter[str]:
    """How often a call reads each row by its key; partitions of definitions, families and environments only."""
    seen: Counter[str] = Counter()
    get = world.table.get

    def counting(pk: str, sk: str) -> Item | None:
        seen[f"{pk}/{sk}"] += 1
        return get(pk, sk)

    with monkeypatch.context() as watched:
        watched.setattr(world.table, "get", counting)
        call()
    return seen


def test_a_comparison_and_a_check_read_each_definition_once(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    draft = world.definitions.create(world.caller, HELLO).definition
    version = world.definitions.publish(world.caller, draft.id).published
    calls: tuple[Callable[[], object], ...] = (
        lambda: world.definitions.diff(world.caller, draft.id),
        lambda: world.definitions.validate(world.caller, draft.id),
    )
    for call in calls:
        seen = rows_read(world, monkeypatch, call)
        own = {key: times for key, times in seen.items() if draft.id in key or version.id in key}
        assert own
        assert set(own.values()) == {1}, own


def test_a_publication_asks_once_what_the_server_has(world: World) -> None:
    draft = world.definitions.create(world.caller, HELLO).definition
    with patch("ductor.app.definitions.validation_context", wraps=validation_context) as asked:
        world.definitions.publish(world.caller, draft.id)
    assert asked.call_count == 1
