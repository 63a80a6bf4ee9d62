"""From a template to a run: drafts are edited as text, refused at their fields, published, and started."""

from __future__ import annotations

import json
import re
from typing import Any
from uuid import uuid4

import httpx
import pytest
from playwright.sync_api import Locator, Page, expect
from tests.console import shop
from tests.console.conftest import PHONE, OpenPage, Shop

pytestmark = pytest.mark.browser

STEPS: list[dict[str, Any]] = [
    {"ref": "greet", "type": "action", "action": "core.echo", "redaction_policy": "none", "args": {"text": "hello"}},
    {"ref": "rest", "type": "wait", "args": {"duration": "1ms"}},
]


LARGE = 9007199254740993
"""One more than what JavaScript keeps exactly."""


def draft(client: httpx.Client, **fields: Any) -> dict[str, Any]:
    """A new draft in a family of its own."""
    body = {
        "family_slug": f"f_{uuid4().hex[:12]}",
        "title": "A draft",
        "steps": STEPS,
        "edges": [{"source_ref": "greet", "target_ref": "rest"}],
        **fields,
    }
    answer = client.post("/api/workflow-definitions", json=body)
    assert answer.status_code == 201, answer.text
    made: dict[str, Any] = answer.json()["data"]
    return made


def read(client: httpx.Client, definition_id: str) -> dict[str, Any]:
    found: dict[str, Any] = client.get(f"/api/workflow-definitions/{definition_id}").json()["data"]
    return found


def text_of(page: Page) -> Locator:
    return page.get_by_label("Definition as JSON")


def change(page: Page, before: str, after: str) -> None:
    """Replace a part of the text and wait until the page has dealt with it."""
    text = text_of(page).input_value()
    assert before in text
    text_of(page).fill(text.replace(before, after, 1))


def saved(page: Page, revision: int) -> None:
    expect(page.get_by_text(f"Saved, revision {revision}", exact=True)).to_be_visible()


def test_from_a_template_to_a_finished_run(open_page: OpenPage, counter: Shop) -> None:
    page = open_page("/definitions/new")
    slug = f"hello_{uuid4().hex[:8]}"
    page.get_by_label("Name", exact=True).fill(slug)
    page.get_by_role("button", name="Create the draft").click()
    saved(page, 1)
    expect(page.locator(".graph-node")).to_have_count(2)
    change(page, '"operation": "project"', '"operation": "projekt"')
    problem = page.get_by_role("region", name="Problems").get_by_role("button").first
    expect(problem).to_contain_text("greet.args.operation")
    problem.click()
    selected = text_of(page).evaluate("(area) => area.value.slice(area.selectionStart, area.selectionEnd)")
    assert selected == '"operation": "projekt"'
    expect(page.locator(".code-number.faulty")).to_have_count(1)
    expect(page.locator(".graph-node[data-id=greet]")).to_have_attribute("data-tone", "failed")
    change(page, '"2s"', '"1ms"')
    change(page, "projekt", "project")
    expect(page.get_by_role("region", name="Problems")).to_contain_text("None")
    page.get_by_role("button", name="Publish…").click()
    page.get_by_role("dialog").get_by_role("button", name="Publish", exact=True).click()
    page.get_by_role("link", name="Start a run").click()
    page.get_by_label("Subject id").fill("42")
    page.get_by_label("Labels").fill("customer=7")
    page.get_by_role("button", name="Start the run").click()
    page.wait_for_url(re.compile("#/runs/[0-9a-f-]+"))
    run = page.url.rsplit("/", 1)[1].split("?")[0]
    shop.wait_for(counter.client, run, "completed")
    summary = counter.client.get(f"/api/workflows/runs/{run}").json()["data"]["summary"]
    assert (summary["workflow_type"], summary["subject_id"]) == (slug, "42")
    assert summary["correlation_labels"] == [{"key": "customer", "id": "7"}]


def test_the_graph_follows_the_text(open_page: OpenPage, counter: Shop) -> None:
    page = open_page(f"/definitions/{draft(counter.client)['id']}/edit")
    expect(page.locator(".graph-node")).to_have_count(2)
    change(page, '"steps": [', '"steps": [{"ref": "third", "type": "condition", "title": "A new one"},')
    expect(page.locator(".graph-node[data-id=third]")).to_contain_text("A new one")
    page.locator(".graph-node[data-id=rest]").click()
    start = text_of(page).evaluate("(area) => area.value.slice(area.selectionStart)")
    assert re.match(r'\{[^}]*"rest"', start)


def test_what_is_no_json_is_said_with_its_line_and_not_saved(open_page: OpenPage, counter: Shop) -> None:
    made = draft(counter.client)
    page = open_page(f"/definitions/{made['id']}/edit")
    expect(page.locator(".graph-node")).to_have_count(2)
    change(page, '"A draft",', '"A draft"')
    problems = page.get_by_role("region", name="Problems")
    expect(problems.get_by_role("button")).to_have_count(1)
    expect(problems).to_contain_text('A comma or "}" is missing before this. JSON_SYNTAX')
    expect(page.get_by_text("Not saved: the text is no JSON yet")).to_be_visible()
    expect(page.locator(".graph-node")).to_have_count(2)
    assert read(counter.client, made["id"])["draft_revision"] == 1


def test_what_not_even_a_draft_may_hold_is_refused_at_its_field(open_page: OpenPage, counter: Shop) -> None:
    made = draft(counter.client)
    page = open_page(f"/definitions/{made['id']}/edit")
    saved(page, 1)
    change(page, '"duration"', '"duration": "1ms"}, "timeut_ms": {"x"')
    expect(page.get_by_role("region", name="Problems")).to_contain_text("FIELD_UNKNOWN")
    expect(page.get_by_text("Not saved", exact=True)).to_be_visible()
    assert read(counter.client, made["id"])["draft_revision"] == 1


def with_large_number(client: httpx.Client) -> dict[str, Any]:
    args = {"n": LARGE, "text": str(LARGE)}
    return draft(client, steps=[{"ref": "greet", "type": "action", "action": "core.echo", "args": args}], edges=[])


def test_numbers_beyond_those_of_javascript_are_kept(open_page: OpenPage, counter: Shop) -> None:
    made = with_large_number(counter.client)
    page = open_page(f"/definitions/{made['id']}/edit")
    change(page, str(LARGE), str(LARGE + 2))
    saved(page, 2)
    kept = read(counter.client, made["id"])
    assert kept["steps"][0]["args"] == {"n": LARGE + 2, "text": str(LARGE)}


def test_a_number_that_a_browser_cannot_keep_is_never_saved_as_another_one(open_page: OpenPage, counter: Shop) -> None:
    made = with_large_number(counter.client)
    page = open_page(f"/definitions/{made['id']}/edit")
    page.add_init_script("delete JSON.rawJSON")
    page.reload()
    expect(page.get_by_role("region", name="Problems")).to_contain_text("NUMBER_TOO_LARGE")
    change(page, "A draft", "Another title")
    expect(page.get_by_text("Not saved", exact=True)).to_be_visible()
    kept = read(counter.client, made["id"])
    assert (kept["draft_revision"], kept["steps"][0]["args"]["n"]) == (1, LARGE)


@pytest.mark.parametrize("mine", [True, False])
def test_two_people_who_edit_one_draft(open_page: OpenPage, counter: Shop, mine: bool) -> None:
    made = draft(counter.client)
    page = open_page(f"/definitions/{made['id']}/edit")
    saved(page, 1)
    theirs = {"expected_draft_revision": 1, "title": "Theirs"}
    assert counter.client.patch(f"/api/workflow-definitions/{made['id']}/draft", json=theirs).status_code == 200
    change(page, "A draft", "Mine")
    alert = page.get_by_text("Somebody else saved this draft while you were editing")
    expect(alert).to_be_visible()
    assert read(counter.client, made["id"])["title"] == "Theirs", "nothing is overwritten unasked"
    page.get_by_role("button", name="Keep mine over theirs" if mine else "Load theirs").click()
    expect(alert).to_be_hidden()
    saved(page, 3 if mine else 2)
    assert read(counter.client, made["id"])["title"] == ("Mine" if mine else "Theirs")
    assert json.loads(text_of(page).input_value())["title"] == ("Mine" if mine else "Theirs")


def test_the_publication_of_a_stale_draft_is_refused(open_page: OpenPage, counter: Shop) -> None:
    made = draft(counter.client)
    page = open_page(f"/definitions/{made['id']}/edit")
    saved(page, 1)
    page.get_by_role("button", name="Publish…").click()
    theirs = {"expected_draft_revision": 1, "title": "Theirs"}
    assert counter.client.patch(f"/api/workflow-definitions/{made['id']}/draft", json=theirs).status_code == 200
    page.get_by_role("dialog").get_by_role("button", name="Publish", exact=True).click()
    expect(page.get_by_role("dialog")).to_contain_text("DRAFT_REVISION_CONFLICT")
    listed = counter.client.get("/api/workflow-definitions", params={"family_slug": made["family_slug"]}).json()["data"]
    assert [card["status"] for card in listed] == ["DEFINITION_STATUS_DRAFT"]


def test_what_was_typed_last_is_saved_when_the_page_is_left(open_page: OpenPage, counter: Shop) -> None:
    made = draft(counter.client)
    page = open_page(f"/definitions/{made['id']}/edit")
    saved(page, 1)
    with page.expect_response(lambda answer: answer.request.method == "PATCH"):
        change(page, "A draft", "Typed in a hurry")
        page.get_by_role("link", name="Runs", exact=True).click()
    assert read(counter.client, made["id"])["title"] == "Typed in a hurry"


def test_text_that_cannot_be_saved_is_kept_for_the_way_back(open_page: OpenPage, counter: Shop) -> None:
    made = draft(counter.client)
    page = open_page(f"/definitions/{made['id']}/edit")
    saved(page, 1)
    change(page, '"A draft",', '"Half a title')
    page.get_by_role("link", name="Runs", exact=True).click()
    expect(page.get_by_text("Your last changes are not saved")).to_be_visible()
    page.go_back()
    expect(page.get_by_text("There is text of yours that was not saved")).to_be_visible()
    assert "Half a title" not in text_of(page).input_value()
    page.get_by_role("button", name="Take it back").click()
    assert "Half a title" in text_of(page).input_value()
    change(page, '"Half a title', '"A whole title",')
    saved(page, 2)
    assert read(counter.client, made["id"])["title"] == "A whole title"


def test_changes_between_versions_are_told_in_words(open_page: OpenPage, counter: Shop) -> None:
    client = counter.client
    made = draft(client)
    path = f"/api/workflow-definitions/{made['id']}"
    first = client.post(f"{path}/publish", json={}).json()["published"]
    operations = [
        {"update_step": {"ref": "rest", "args": {"duration": "2ms"}}},
        {"add_step": {"ref": "late", "type": "wait", "args": {"duration": "1ms"}}},
        {"add_edge": {"source_ref": "rest", "target_ref": "late"}},
    ]
    edit = {"expected_draft_revision": 1, "title": "Another title", "operations": operations}
    assert client.patch(f"{path}/draft", json=edit).status_code == 200
    second = client.post(f"{path}/publish", json={}).json()["published"]
    page = open_page(f"/definitions/{second['id']}?tab=changes")
    for words in ("title changed", "A draft → Another title", "rest: args.duration changed", "1ms → 2ms"):
        expect(page.get_by_role("tabpanel")).to_contain_text(words)
    expect(page.get_by_text("Step late (wait) is new")).to_be_visible()
    expect(page.get_by_text("rest → late (success) is new")).to_be_visible()
    page.get_by_label("Version").select_option(first["id"])
    expect(page.get_by_text("There is a newer version")).to_be_visible()


def test_a_step_is_read_with_everything_about_it(open_page: OpenPage, counter: Shop) -> None:
    page = open_page(f"/definitions/{counter.orders}?step=charge")
    panel = page.get_by_role("region", name="Step charge")
    for words in (
        "core.fail",
        "up to 3 attempts",
        "first pause 300 ms",
        "CARD_DECLINED",
        "review on approved",
        "parcels on success",
    ):
        expect(panel).to_contain_text(words)


def test_a_version_that_is_archived_starts_nothing(open_page: OpenPage, counter: Shop) -> None:
    made = draft(counter.client)
    version = counter.client.post(f"/api/workflow-definitions/{made['id']}/publish", json={}).json()["published"]
    page = open_page(f"/definitions/{version['id']}")
    page.get_by_role("button", name="More actions").click()
    page.get_by_role("menuitem", name="Archive").click()
    page.get_by_role("dialog").get_by_role("button", name="Archive", exact=True).click()
    expect(page.locator(".badge[data-status=archived]")).to_be_visible()
    expect(page.get_by_role("link", name="Start a run")).to_have_count(0)


def test_a_wrong_input_is_refused_where_it_was_typed(open_page: OpenPage, counter: Shop) -> None:
    schema = {"type": "object", "required": ["amount"], "properties": {"amount": {"type": "integer", "minimum": 1}}}
    made = draft(counter.client, input_schema=schema)
    version = counter.client.post(f"/api/workflow-definitions/{made['id']}/publish", json={}).json()["published"]
    page = open_page(f"/definitions/{version['id']}/trigger")
    input_ = page.get_by_label("Input", exact=True)
    assert json.loads(input_.input_value()) == {"amount": 1}, "the form begins with what the schema wants"
    input_.fill('{"amount": "many"}')
    page.get_by_role("button", name="Start the run").click()
    expect(page.get_by_role("alert").filter(has_text="The run was not started")).to_contain_text("amount")
    input_.fill("{")
    page.get_by_role("button", name="Start the run").click()
    expect(page.get_by_role("alert").filter(has_text="Input is not JSON")).to_be_visible()


def test_the_answer_of_a_checkpoint_is_waited_for(open_page: OpenPage, counter: Shop) -> None:
    checkpoint = {"name": "greeted", "step_ref": "greet", "response": True, "output": "${{ STEPS.greet.output }}"}
    made = draft(counter.client, checkpoints=[checkpoint])
    version = counter.client.post(f"/api/workflow-definitions/{made['id']}/publish", json={}).json()["published"]
    page = open_page(f"/definitions/{version['id']}/trigger")
    page.get_by_label("Wait for the checkpoint's answer").check()
    page.get_by_role("button", name="Start the run").click()
    expect(page.get_by_role("link", name="Open the run")).to_be_visible()
    expect(page.locator(".json").last).to_contain_text("hello")


def test_hostile_words_in_a_definition_stay_words(open_page: OpenPage, counter: Shop) -> None:
    evil = "<img src=x onerror=\"window.hurt='yes'\"></text><script>window.hurt='yes'</script>"
    step = {
        "ref": "a",
        "type": "action",
        "action": "core.echo",
        "title": evil,
        "description": evil,
        "args": {"x": evil},
    }
    edges = [{"source_ref": "a", "target_ref": "b", "condition": f'"{evil[:8]}" != ""'}]
    other = {"ref": "b", "type": "wait", "args": {"duration": "1ms"}}
    made = draft(counter.client, title=evil, description=evil, tags=["<b>tag</b>"], steps=[step, other], edges=edges)
    page = open_page("/definitions")
    expect(page.get_by_text("<b>tag</b>")).to_be_visible()
    for view in ("?step=a", "?tab=source", "?tab=changes", "/edit"):
        page.evaluate("(to) => { location.hash = to; }", f"/definitions/{made['id']}{view}")
        expect(page.get_by_role("heading", name=evil).first).to_be_visible()
        assert page.evaluate("window.hurt") is None
        assert page.locator("img[src=x], b, [onerror]").count() == 0


def test_on_a_phone_the_editor_shows_one_thing_at_a_time(open_page: OpenPage, counter: Shop) -> None:
    page = open_page(f"/definitions/{draft(counter.client)['id']}/edit", size=PHONE)
    expect(text_of(page)).to_be_visible()
    expect(page.locator(".graph")).to_be_hidden()
    page.get_by_role("button", name="Graph", exact=True).click()
    expect(page.locator(".graph-node").first).to_be_in_viewport()
    expect(text_of(page)).to_be_hidden()
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE[0]


def test_a_version_is_duplicated_and_the_copy_thrown_away(open_page: OpenPage, counter: Shop) -> None:
    page = open_page(f"/definitions/{counter.onboarding}")
    copy = f"copy_{uuid4().hex[:10]}"
    page.get_by_role("button", name="More actions").click()
    page.get_by_role("menuitem", name="Duplicate…").click()
    page.get_by_label("Name of the copy").fill("Not A Slug")
    page.get_by_role("button", name="Duplicate", exact=True).click()
    expect(page.get_by_role("dialog")).to_contain_text("a family slug starts with a to z")
    page.get_by_label("Name of the copy").fill(copy)
    page.get_by_role("button", name="Duplicate", exact=True).click()
    saved(page, 1)
    expect(page.locator(".graph-node")).to_have_count(3)
    page.get_by_role("button", name="More actions").click()
    page.get_by_role("menuitem", name="Delete the draft…").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete the draft").click()
    page.wait_for_url(re.compile("#/definitions$"))
    left = counter.client.get("/api/workflow-definitions", params={"family_slug": copy}).json()["data"]
    assert left == []


def test_who_may_only_read_is_told_which_scope_an_edit_needs(open_page: OpenPage, counter: Shop) -> None:
    admin = dict(
        line.removeprefix("export ").split("=", 1)
        for line in (counter.server.data / "admin.env").read_text().splitlines()
    )
    headers = {"Authorization": f"Bearer {admin['DUCTOR_API_KEY']}", "X-Tenant-ID": counter.tenant}
    body = {"name": "reader", "roles": ["viewer"]}
    issued = httpx.post(f"{counter.server.url}/api/admin/api-keys", headers=headers, json=body).json()["data"]["key"]
    made = draft(counter.client)
    page = open_page(signed_in=False)
    query = httpx.QueryParams({"key": issued, "tenant": counter.tenant, "to": f"/definitions/{made['id']}/edit"})
    page.goto("about:blank")
    page.goto(f"{counter.url}#{query}")
    saved(page, 1)
    change(page, "A draft", "Mine")
    expect(page.get_by_role("region", name="Problems")).to_contain_text("lacks the scope workflow_definition:write")
    expect(page.get_by_text("Not saved", exact=True)).to_be_visible()


def test_the_list_is_searched_and_filtered(open_page: OpenPage, counter: Shop) -> None:
    made = draft(counter.client, title="Needle in a haystack", tags=["sewing"])
    page = open_page("/definitions?q=haystack")
    row = page.get_by_role("row").filter(has_text=made["family_slug"])
    expect(row).to_contain_text("Not published")
    expect(row).to_contain_text("Draft, revision 1")
    page.get_by_label("State").select_option("published")
    expect(page.get_by_text("Nothing matches")).to_be_visible()
    page.get_by_role("button", name="Clear the filters").click()
    page.get_by_role("textbox", name="Tag").fill("sewing")
    expect(page.get_by_role("table", name="Definitions").get_by_role("row")).to_have_count(2)
    page.get_by_role("table", name="Definitions").get_by_role("row").nth(1).focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Needle in a haystack")).to_be_visible()
