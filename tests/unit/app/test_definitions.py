"""The lifecycle of definitions: drafts, versions, archive, and who sees them."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from tests.unit.app.refusal import refused
from tests.unit.app.world import HELLO, World

from ductor.adapters.local.database import Database
from ductor.adapters.local.system import SystemIds
from ductor.adapters.local.table import SqliteTable
from ductor.app.listing import DefinitionFilter
from ductor.model.enums import DefinitionStatus, StepType
from ductor.model.errors import ErrorCode, RefusedError, Severity

INVALID = {"family_slug": "broken", "steps": [{"ref": "a", "type": "action"}, {"ref": "b", "type": "wait"}]}


def edit(world: World, draft_id: str, revision: int, **changes: Any) -> Any:
    return world.definitions.edit(world.caller, draft_id, {"expected_draft_revision": revision, **changes})


def test_a_new_draft_has_revision_1_and_the_number_of_its_first_version(world: World) -> None:
    saved = world.definitions.create(world.caller, HELLO)
    view = saved.definition
    assert (view.status, view.version, view.draft_revision) == (DefinitionStatus.DRAFT, 1, 1)
    assert saved.warnings == ()
    assert world.definitions.get(world.caller, view.id) == view


def test_a_draft_needs_no_graph_and_gets_the_keys_environment(world: World) -> None:
    saved = world.definitions.create(world.caller, {"family_slug": "lead-router", "title": "Lead Router"})
    assert saved.definition.document["environment"] == "default"
    assert [violation.code for violation in saved.warnings] == ["GRAPH_EMPTY"]


def test_answers_have_the_long_spelling_and_both_are_read(world: World) -> None:
    short = {**HELLO, "steps": [{"ref": "p", "type": "wait", "args": {"duration": "1s"}}], "edges": []}
    view = world.definitions.create(world.caller, short).definition
    assert view.document["steps"][0]["type"] == "STEP_TYPE_WAIT"


def test_a_null_environment_is_an_omitted_one(world: World) -> None:
    view = world.definitions.create(world.caller, {**HELLO, "environment": None}).definition
    assert view.document["environment"] == "default"


def test_a_family_has_at_most_one_draft(world: World) -> None:
    world.definitions.create(world.caller, HELLO)
    with refused(ErrorCode.ALREADY_EXISTS, "DRAFT_EXISTS"):
        world.definitions.create(world.caller, HELLO)


def test_the_same_slug_is_free_for_another_tenant(world: World) -> None:
    world.definitions.create(world.caller, HELLO)
    assert world.definitions.create(world.stranger(), HELLO).definition.version == 1


@pytest.mark.parametrize("slug", [None, "", "1a", "A", "a b", "a" * 64, "ä", 5, "a#b", "a/b", "a\n"])
def test_a_slug_must_be_one(world: World, slug: Any) -> None:
    code = "FIELD_REQUIRED" if slug is None else "FIELD_INVALID"
    with refused(ErrorCode.INVALID_ARGUMENT, code, field="family_slug"):
        world.definitions.create(world.caller, {**HELLO, "family_slug": slug})


def test_an_unknown_environment_is_refused(world: World) -> None:
    with refused(ErrorCode.INVALID_ARGUMENT, "ENVIRONMENT_UNKNOWN", field="environment"):
        world.definitions.create(world.caller, {**HELLO, "environment": "nowhere"})


def test_a_key_without_authority_over_the_environment_is_refused(world: World) -> None:
    caller = world.new_caller(world.tenant, environments_write=frozenset({"other"}))
    with refused(ErrorCode.PERMISSION_DENIED, "ENVIRONMENT_NOT_WRITABLE"):
        world.definitions.create(caller, HELLO)
    draft = world.definitions.create(world.caller, HELLO).definition
    with refused(ErrorCode.PERMISSION_DENIED, "ENVIRONMENT_NOT_WRITABLE"):
        world.definitions.publish(caller, draft.id)


def test_what_no_draft_may_hold_refuses_the_save(world: World) -> None:
    with refused(ErrorCode.INVALID_ARGUMENT, "FIELD_UNKNOWN"):
        world.definitions.create(world.caller, {**HELLO, "stepz": []})


def test_everything_else_saves_with_warnings_that_publish_refuses_at_once(world: World) -> None:
    saved = world.definitions.create(world.caller, INVALID)
    errors = {violation.code for violation in saved.warnings if violation.severity is Severity.ERROR}
    assert {"ACTION_REQUIRED", "WAIT_SPEC_INVALID"} <= errors
    with pytest.raises(Exception, match="cannot be published") as caught:
        world.definitions.publish(world.caller, saved.definition.id)
    assert {violation.code for violation in caught.value.violations} == errors  # type: ignore[attr-defined]
    assert world.definitions.get(world.caller, saved.definition.id).version == 1


def test_publishing_writes_an_immutable_version_and_leaves_the_draft(world: World) -> None:
    draft = world.definitions.create(world.caller, HELLO).definition
    published = world.definitions.publish(world.caller, draft.id, 1)
    assert published.published.status is DefinitionStatus.PUBLISHED
    assert published.published.version == 1
    assert published.published.id != draft.id
    assert (published.draft.id, published.draft.draft_revision, published.draft.version) == (draft.id, 1, 2)
    edit(world, draft.id, 1, title="Changed")
    assert world.definitions.get(world.caller, published.published.id).document["title"] == "Hello World"
    with refused(ErrorCode.FAILED_PRECONDITION, "NOT_A_DRAFT"):
        edit(world, published.published.id, 0, title="Changed")


def test_publishing_the_same_again_makes_a_version_and_says_so(world: World) -> None:
    draft = world.definitions.create(world.caller, HELLO).definition
    world.definitions.publish(world.caller, draft.id)
    again = world.definitions.publish(world.caller, draft.id)
    assert again.published.version == 2
    assert [violation.code for violation in again.warnings] == ["NO_CHANGES"]
    edit(world, draft.id, 1, description="Says hello")
    assert world.definitions.publish(world.caller, draft.id).warnings == ()


def test_a_stale_revision_publishes_and_edits_nothing(world: World) -> None:
    draft = world.definitions.create(world.caller, HELLO).definition
    edit(world, draft.id, 1, title="Two")
    with refused(ErrorCode.ABORTED, "DRAFT_REVISION_CONFLICT") as found:
        world.definitions.publish(world.caller, draft.id, 1)
    assert "revision 2" in found[0].message
    with refused(ErrorCode.ABORTED, "DRAFT_REVISION_CONFLICT"):
        edit(world, draft.id, 1, title="Three")
    assert world.definitions.get(world.caller, draft.id).document["title"] == "Two"


@pytest.mark.parametrize(
    ("revision", "code"),
    [(None, "FIELD_REQUIRED"), ("1", "FIELD_INVALID"), (1.0, "FIELD_INVALID"), (True, "FIELD_INVALID")],
)
def test_an_edit_needs_the_revision_as_a_number(world: World, revision: Any, code: str) -> None:
    draft = world.definitions.create(world.caller, HELLO).definition
    with refused(ErrorCode.INVALID_ARGUMENT, code, field="expected_draft_revision"):
        world.definitions.edit(world.caller, draft.id, {"expected_draft_revision": revision})


def test_an_edit_adds_a_step_and_counts_the_revision(world: World) -> None:
    draft = world.definitions.create(world.caller, {"family_slug": "lead-router"}).definition
    step = {"ref": "enrich", "type": "STEP_TYPE_ACTION", "action": "core.echo"}
    saved = edit(world, draft.id, 1, title="Lead Router v2", operations=[{"add_step": step}])
    assert saved.definition.draft_revision == 2
    assert saved.definition.document["title"] == "Lead Router v2"
    assert saved.definition.document["steps"] == [step]
    assert saved.warnings == ()


def test_an_edit_is_all_or_nothing(world: World) -> None:
    draft = world.definitions.create(world.caller, HELLO).definition
    operations = [{"remove_step": {"ref": "pause"}}, {"remove_step": {"ref": "nobody"}}]
    with refused(ErrorCode.INVALID_ARGUMENT, "STEP_UNKNOWN", field="operations[1].remove_step.ref"):
        edit(world, draft.id, 1, operations=operations)
    assert world.definitions.get(world.caller, draft.id) == draft


def test_a_draft_stays_in_its_family(world: World) -> None:
    draft = world.definitions.create(world.caller, HELLO).definition
    with refused(ErrorCode.INVALID_ARGUMENT, "FIELD_INVALID", field="family_slug"):
        edit(world, draft.id, 1, family_slug="other")


def test_a_deleted_draft_leaves_versions_and_makes_room_for_a_new_one(world: World) -> None:
    draft = world.definitions.create(world.caller, HELLO).definition
    published = world.definitions.publish(world.caller, draft.id).published
    world.definitions.delete_draft(world.caller, draft.id)
    with refused(ErrorCode.NOT_FOUND, "DEFINITION_NOT_FOUND"):
        world.definitions.get(world.caller, draft.id)
    assert world.definitions.get(world.caller, published.id).version == 1
    assert world.definitions.create(world.caller, HELLO).definition.version == 2


def test_archiving_is_for_versions_and_can_be_repeated(world: World) -> None:
    draft = world.definitions.create(world.caller, HELLO).definition
    with refused(ErrorCode.FAILED_PRECONDITION, "DEFINITION_NOT_PUBLISHED"):
        world.definitions.archive(world.caller, draft.id)
    published = world.definitions.publish(world.caller, draft.id).published
    archived = world.definitions.archive(world.caller, published.id)
    assert archived.status is DefinitionStatus.ARCHIVED
    assert world.definitions.archive(world.caller, published.id) == archived


def test_a_duplicate_is_of_the_draft_or_else_of_the_newest_version(world: World) -> None:
    draft = world.definitions.create(world.caller, HELLO).definition
    published = world.definitions.publish(world.caller, draft.id).published
    edit(world, draft.id, 1, title="Edited")
    first = world.definitions.duplicate(world.caller, published.id, "copy_one").definition
    assert (first.document["title"], first.version, first.draft_revision) == ("Edited", 1, 1)
    world.definitions.delete_draft(world.caller, draft.id)
    second = world.definitions.duplicate(world.caller, published.id, "copy_two").definition
    assert (second.family_slug, second.document["title"]) == ("copy_two", "Hello World")
    with refused(ErrorCode.ALREADY_EXISTS, "DRAFT_EXISTS"):
        world.definitions.duplicate(world.caller, published.id, "copy_one")


def test_another_tenants_definition_answers_like_an_unknown_one(world: World) -> None:
    draft = world.definitions.create(world.caller, HELLO).definition
    stranger = world.stranger()
    calls: list[Callable[[str], object]] = [
        lambda id_: world.definitions.get(stranger, id_),
        lambda id_: world.definitions.edit(stranger, id_, {"expected_draft_revision": 1}),
        lambda id_: world.definitions.publish(stranger, id_),
        lambda id_: world.definitions.validate(stranger, id_),
        lambda id_: world.definitions.archive(stranger, id_),
        lambda id_: world.definitions.duplicate(stranger, id_, "copy"),
        lambda id_: world.definitions.delete_draft(stranger, id_),
    ]
    for call in calls:
        answers = []
        for definition_id in (draft.id, "no-such-id", "", "a#b", "x" * 3_000, "\ud800"):
            with refused(ErrorCode.NOT_FOUND, "DEFINITION_NOT_FOUND") as found:
                call(definition_id)
            answers.append((found[0].message, found[0].violations))
        assert len(set(answers)) == 1


def test_scopes_are_checked(world: World) -> None:
    viewer = world.new_caller(world.tenant, scopes=frozenset({"workflow_definition:read"}))
    world.definitions.list(viewer, DefinitionFilter(), None, None)
    with refused(ErrorCode.PERMISSION_DENIED, "SCOPE_MISSING"):
        world.definitions.create(viewer, HELLO)


def test_runs_execute_the_published_form_whatever_happens_to_the_row(world: World) -> None:
    published_id = world.published()
    world.definitions.archive(world.caller, published_id)
    row, definition = world.library.load(world.tenant, published_id)
    assert (row.version, [step.type for step in definition.steps]) == (1, [StepType.DATAFLOW, StepType.WAIT])
    assert world.library.load(world.tenant, published_id)[1] is definition
    draft = world.definitions.create(world.caller, {**HELLO, "family_slug": "other"}).definition
    with refused(ErrorCode.NOT_FOUND, "DEFINITION_NOT_FOUND"):
        world.library.load(world.tenant, draft.id)
    with refused(ErrorCode.NOT_FOUND, "DEFINITION_NOT_FOUND"):
        world.library.load("another tenant", published_id)


def test_the_largest_definition_fits(world: World) -> None:
    steps = [{"ref": f"step_{n:03d}", "type": "action", "action": "core.echo"} for n in range(500)]
    ends = [(source, target) for target in range(1, 500) for source in range(max(0, target - 11), target)][:5_000]
    edges = [{"source_ref": f"step_{a:03d}", "target_ref": f"step_{b:03d}"} for a, b in ends]
    published_id = world.published({"family_slug": "large", "steps": steps, "edges": edges})
    assert len(world.library.load(world.tenant, published_id)[1].edges) == len(edges)


def test_a_definition_that_no_row_can_hold_is_refused(world: World) -> None:
    noise = [world.ids.token(3_000) for _ in range(200)]
    steps = [{"ref": f"s{n}", "type": "action", "action": "core.echo", "args": {"x": x}} for n, x in enumerate(noise)]
    with refused(ErrorCode.INVALID_ARGUMENT, "DEFINITION_TOO_LARGE"):
        world.definitions.create(world.caller, {"family_slug": "huge", "steps": steps})


class TestList:
    def listed(self, world: World, **wanted: Any) -> list[str]:
        page = world.definitions.list(world.caller, DefinitionFilter(**wanted), None, None)
        return [f"{card.family_slug}:{card.status.value}:{card.version}" for card in page.items]

    def test_newest_first_with_drafts_showing_their_next_version(self, world: World) -> None:
        world.published()
        world.clock.advance(1)
        world.definitions.create(world.caller, {"family_slug": "other"})
        found = self.listed(world)
        assert found[0] == "other:draft:1"
        assert sorted(found[1:]) == ["hello_world:draft:2", "hello_world:published:1"]

    def test_filters_combine(self, world: World) -> None:
        world.published()
        world.definitions.create(world.caller, {"family_slug": "sales", "title": "Größe", "tags": ["a", "b"]})
        assert self.listed(world, status="published") == ["hello_world:published:1"]
        assert self.listed(world, status="DEFINITION_STATUS_PUBLISHED") == ["hello_world:published:1"]
        assert self.listed(world, q="grÖSSE") == ["sales:draft:1"]
        assert self.listed(world, tags=("b",)) == ["sales:draft:1"]
        assert self.listed(world, tags=("b", "c")) == []
        assert self.listed(world, family_slug="hello_world", status="draft") == ["hello_world:draft:2"]
        with refused(ErrorCode.INVALID_ARGUMENT, "FIELD_INVALID", field="status"):
            self.listed(world, status="finished")

    def test_paging_is_stable_while_definitions_are_written(self, world: World) -> None:
        for number in range(7):
            world.clock.advance(1)
            world.definitions.create(world.caller, {"family_slug": f"f{number}"})
        seen: list[str] = []
        cursor: str | None = None
        while True:
            page = world.definitions.list(world.caller, DefinitionFilter(), 2, cursor)
            seen += [card.family_slug for card in page.items]
            world.clock.advance(1)
            world.definitions.create(world.caller, {"family_slug": f"new{len(seen)}"})
            world.definitions.edit(world.caller, page.items[0].id, {"expected_draft_revision": 1, "title": "x"})
            cursor = page.next_cursor
            if cursor is None:
                break
        assert seen == [f"f{number}" for number in reversed(range(7))]

    def test_the_last_full_page_has_no_next_one(self, world: World) -> None:
        world.definitions.create(world.caller, HELLO)
        assert world.definitions.list(world.caller, DefinitionFilter(), 1, None).next_cursor is None

    def test_a_cursor_is_for_its_tenant_and_filter_only(self, world: World) -> None:
        for number in range(3):
            world.definitions.create(world.caller, {"family_slug": f"f{number}"})
        cursor = world.definitions.list(world.caller, DefinitionFilter(), 1, None).next_cursor
        assert cursor is not None
        for caller, wanted, text in [
            (world.stranger(), DefinitionFilter(), cursor),
            (world.caller, DefinitionFilter(q="f"), cursor),
            (world.caller, DefinitionFilter(), cursor[:-3]),
            (world.caller, DefinitionFilter(), "%%%"),
            (world.caller, DefinitionFilter(), "ä" * 9_000),
        ]:
            with refused(ErrorCode.INVALID_ARGUMENT, "CURSOR_INVALID"):
                world.definitions.list(caller, wanted, 1, text)

    def test_the_limit_has_limits(self, world: World) -> None:
        for limit in (0, -1, 201):
            with refused(ErrorCode.INVALID_ARGUMENT, "FIELD_INVALID", field="limit"):
                world.definitions.list(world.caller, DefinitionFilter(), limit, None)


def test_concurrent_publications_get_consecutive_numbers(tmp_path: Path) -> None:
    database = Database(tmp_path / "ductor.db")
    try:
        world = World(table=SqliteTable(database), ids=SystemIds())
        draft = world.definitions.create(world.caller, HELLO).definition
        with ThreadPoolExecutor(8) as pool:
            done = list(pool.map(lambda _: world.definitions.publish(world.caller, draft.id), range(16)))
        assert sorted(one.published.version for one in done) == list(range(1, 17))
        assert world.definitions.get(world.caller, draft.id).version == 17
    finally:
        database.close()


def test_editors_at_the_same_time_lose_no_edit_silently(tmp_path: Path) -> None:
    database = Database(tmp_path / "ductor.db")
    try:
        world = World(table=SqliteTable(database), ids=SystemIds())
        draft = world.definitions.create(world.caller, HELLO).definition

        def add(name: str) -> int:
            """How often the edit had to be made again on a newer revision."""
            for again in range(100):
                revision = world.definitions.get(world.caller, draft.id).draft_revision
                step = {"add_step": {"ref": name, "type": "wait", "args": {"duration": "1s"}}}
                changes = {"expected_draft_revision": revision, "operations": [step]}
                try:
                    world.definitions.edit(world.caller, draft.id, changes)
                except RefusedError as conflict:
                    if conflict.violations[0].code != "DRAFT_REVISION_CONFLICT":
                        raise
                else:
                    return again
            raise AssertionError("never got through")

        with ThreadPoolExecutor(6) as pool:
            list(pool.map(add, [f"s{number}" for number in range(18)]))
        found = world.definitions.get(world.caller, draft.id)
        assert found.draft_revision == 19
        assert {step["ref"] for step in found.document["steps"]} >= {f"s{number}" for number in range(18)}
    finally:
        database.close()
