"""The pages beside the runs for those who see little, and what the keyboard alone can do there."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect
from tests.console.conftest import OpenPage, Shop
from tests.console.test_access import CONTRAST
from tests.console.test_definitions import draft, text_of

pytestmark = pytest.mark.browser


def go(page: Page, path: str) -> None:
    """Open another page of the console and wait until it has what it asked for."""
    leave = "(to) => { document.querySelector('main').firstElementChild.dataset.left = 'yes'; location.hash = to; }"
    expect(page.locator("main > *")).not_to_have_count(0)
    page.evaluate(leave, f"/{path}")
    expect(page.locator("main > :not([data-left]) h1").first).to_be_visible()
    page.wait_for_load_state("networkidle")


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_texts_have_the_contrast_that_reading_needs(open_page: OpenPage, counter: Shop, theme: str) -> None:
    faulty = draft(counter.client, steps=[{"ref": "greet", "type": "action", "action": "core.ekko"}], edges=[])
    page = open_page("/runs", color_scheme=theme)
    views = [f"/{counter.orders}?step=charge", "/new", f"/{counter.orders}?tab=source&format=yaml", ""]
    views += [f"/{counter.orders}?tab=changes", f"/{faulty['id']}/edit", f"/{counter.orders}/trigger"]
    others = ["approvals", "schedules", "events", "batches", "batches/new?workflow_type=x", "settings?tab=keys"]
    for path in [*(f"definitions{view}" for view in views), *others]:
        go(page, path)
        assert page.evaluate(CONTRAST) == [], path


def test_every_field_and_button_has_a_name(open_page: OpenPage, counter: Shop) -> None:
    faulty = draft(counter.client, steps=[{"ref": "greet", "type": "action", "action": "core.ekko"}], edges=[])
    nameless = """() => [...document.querySelectorAll('main :is(button, a, input, select, textarea, [role=button])')]
      .filter((one) => one.checkVisibility() && !one.ariaLabel && !one.labels?.length && !one.textContent.trim())
      .map((one) => one.outerHTML.slice(0, 120))"""
    page = open_page("/batches")
    paths = [
        "definitions",
        f"definitions/{faulty['id']}/edit",
        f"definitions/{counter.orders}/trigger",
        "definitions/new",
    ]
    for path in [*paths, "approvals", "schedules", "events", "batches/new", "settings"]:
        go(page, path)
        assert page.evaluate(nameless) == [], path


def test_the_editor_indents_and_lets_the_keyboard_go(open_page: OpenPage, counter: Shop) -> None:
    page = open_page(f"/definitions/{draft(counter.client)['id']}/edit")
    text_of(page).focus()
    page.keyboard.press("ControlOrMeta+Home")
    page.keyboard.press("End")
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    page.keyboard.type('"x": 1,')
    assert text_of(page).input_value().startswith('{\n    "x": 1,\n')
    page.keyboard.press("ControlOrMeta+z")
    assert not text_of(page).input_value().startswith('{\n    "x": 1,\n')
    page.keyboard.press("Escape")
    page.keyboard.press("Tab")
    expect(text_of(page)).not_to_be_focused()
