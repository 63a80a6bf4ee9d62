"""What differs between two definitions, and who may ask."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.app.world import HELLO, World

from ductor.app.comparison import Change, compare
from ductor.model.errors import RefusedError

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
    upcoming = world.definitions.upcoming(world.caller, draft.id)
    assert len(upcoming) == 5
    assert all(at > now and at % 300_000 == 0 for at in upcoming)


def test_without_a_schedule_nothing_is_upcoming(world: World) -> None:
    assert world.definitions.upcoming(world.caller, world.published()) == ()
