"""Who uses no mouse, a phone, or a dark room."""

from __future__ import annotations

import re
from typing import Final

import pytest
from playwright.sync_api import Page, expect
from tests.console import shop
from tests.console.conftest import PHONE, OpenPage, Shop

pytestmark = pytest.mark.browser

# Texts whose contrast to what lies behind them is below what WCAG AA asks for; what is disabled may be faint.
CONTRAST: Final = """() => {
  const canvas = Object.assign(document.createElement("canvas"), {width: 1, height: 1});
  const paint = canvas.getContext("2d", {willReadFrequently: true});
  const rgba = (text) => {
    paint.clearRect(0, 0, 1, 1);
    paint.fillStyle = text;
    paint.fillRect(0, 0, 1, 1);
    const [r, g, b, a] = paint.getImageData(0, 0, 1, 1).data;
    return [r, g, b, a / 255];
  };
  const over = ([r, g, b, a], under) => [r, g, b].map((part, at) => part * a + under[at] * (1 - a));
  const behind = (element) => {
    const layers = [];
    for (let one = element; one; one = one.parentElement) layers.unshift(rgba(getComputedStyle(one).backgroundColor));
    return layers.reduce((under, layer) => over(layer, under), [255, 255, 255]);
  };
  const linear = (part) => part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  const light = (rgb) => {
    const [r, g, b] = rgb.map((part) => part / 255).map(linear);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const found = [];
  for (const element of document.querySelectorAll("body *:not(svg, svg *)")) {
    const texts = [...element.childNodes].filter((node) => node.nodeType === 3);
    const words = texts.map((node) => node.data.trim()).join("");
    if (!words || !element.checkVisibility({visibilityProperty: true, opacityProperty: true})) continue;
    if (element.closest("[aria-disabled=true], :disabled, .skeleton, .sr-only, option")) continue;
    const style = getComputedStyle(element);
    const under = behind(element);
    const [one, other] = [light(over(rgba(style.color), under)), light(under)].sort((a, b) => b - a);
    const ratio = (one + 0.05) / (other + 0.05);
    const large = parseFloat(style.fontSize) >= 24 || (parseFloat(style.fontSize) >= 18.66 && style.fontWeight >= 700);
    if (ratio < (large ? 3 : 4.5)) found.push(`${words.slice(0, 40)} (${element.className}): ${ratio.toFixed(2)}`);
  }
  return found;
}"""


def tab_to(page: Page, name: str, presses: int = 60) -> None:
    """Press Tab until the focus is on what has this name."""
    for _ in range(presses):
        page.keyboard.press("Tab")
        focused = "(document.activeElement.ariaLabel ?? document.activeElement.textContent).trim()"
        if page.evaluate(focused) == name:
            return
    raise AssertionError(f"{name} cannot be reached by Tab")


def test_everything_works_from_the_keyboard_alone(open_page: OpenPage, counter: Shop) -> None:
    run = shop.trigger(counter.client, counter.orders, shop.order(21, amount=9000))
    shop.wait_for(counter.client, run, "waiting")
    page = open_page(signed_in=False)
    page.keyboard.type(counter.key) if page.evaluate("document.activeElement.name") == "key" else None
    if page.get_by_label("API key").input_value() == "":
        page.get_by_label("API key").focus()
        page.keyboard.type(counter.key)
    page.keyboard.press("Tab")
    page.keyboard.type(counter.tenant)
    page.keyboard.press("Enter")
    row = page.locator(f"tr[data-key='{run}']")
    expect(row).to_be_visible()
    page.locator("table tbody tr").first.focus()
    while page.evaluate("document.activeElement.dataset.key") != run:
        page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    review = page.locator(".graph-node[data-id=review]")
    expect(review).to_be_visible()
    tab_to(page, page.locator(".graph-node[tabindex='0']").get_attribute("aria-label") or "")
    for _ in range(12):
        if page.evaluate("document.activeElement.dataset.id") == "review":
            break
        page.keyboard.press("ArrowDown")
        if page.evaluate("document.activeElement.dataset.id") == "reserve":
            page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    tab_to(page, "Approve…")
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog")).to_be_visible()
    page.keyboard.type("looks right")
    tab_to(page, "Approve")
    page.keyboard.press("Enter")
    expect(page.get_by_text("Approve review: applied")).to_be_visible()


def test_a_slash_leads_to_the_search(open_page: OpenPage) -> None:
    page = open_page()
    expect(page.locator("table tbody tr").first).to_be_visible()
    page.keyboard.press("/")
    page.keyboard.type("ord-10403")
    expect(page.locator("table tbody tr")).to_have_count(1)


def test_controls_and_copying_work_over_plain_http_from_another_machine(open_page: OpenPage, counter: Shop) -> None:
    """There a browser has neither a clipboard nor a maker of ids."""
    page = open_page(signed_in=False, permissions=["clipboard-read"])
    page.add_init_script(
        "Object.defineProperty(Crypto.prototype, 'randomUUID', {value: undefined});"
        "Object.defineProperty(Clipboard.prototype, 'writeText', {value: undefined});"
    )
    page.goto(counter.url)
    ids = page.evaluate("import('./js/api.js').then((api) => [api.newRequestId(), api.newRequestId()])")
    form = re.compile(r"console-[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")
    assert all(form.fullmatch(one) for one in ids)
    assert ids[0] != ids[1]
    page.goto(counter.link(f"/runs/{counter.runs['failed']}"))
    page.get_by_role("button", name="Copy the run id").click()
    assert page.evaluate("navigator.clipboard.readText()") == counter.runs["failed"]


def test_a_dialog_closes_by_escape_and_changes_nothing(open_page: OpenPage, counter: Shop) -> None:
    page = open_page(f"/runs/{counter.runs['delivery']}")
    page.get_by_role("button", name="Cancel", exact=True).click()
    expect(page.get_by_role("dialog")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(page.locator(".run-title .badge").first).to_have_text("Waiting")


@pytest.mark.parametrize("tab", ["graph", "timeline", "steps", "history", "values", "tree"])
def test_a_run_fits_a_phone(open_page: OpenPage, counter: Shop, tab: str) -> None:
    page = open_page(f"/runs/{counter.runs['failed']}?tab={tab}", size=PHONE, is_mobile=True, has_touch=True)
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    page.wait_for_load_state("networkidle")
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE[0]


def test_the_list_and_the_menu_fit_a_phone(open_page: OpenPage, counter: Shop) -> None:
    page = open_page(size=PHONE, is_mobile=True, has_touch=True)
    expect(page.locator("table tbody tr").first).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE[0]
    page.get_by_role("button", name="Menu").click()
    page.get_by_role("link", name="Definitions").click()
    expect(page).to_have_url(f"{counter.url}#/definitions")
    expect(page.get_by_role("main")).not_to_be_empty()
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE[0]


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_texts_have_the_contrast_that_reading_needs(open_page: OpenPage, counter: Shop, theme: str) -> None:
    page = open_page(color_scheme=theme)
    expect(page.locator("table tbody tr").first).to_be_visible()
    assert page.evaluate(CONTRAST) == []
    for path in (f"{counter.runs['failed']}?node=charge", f"{counter.runs['approval']}?node=review&tab=history"):
        page.goto(f"{counter.url}#/runs/{path}")
        expect(page.get_by_role("complementary", name="Step")).to_be_visible()
        page.wait_for_load_state("networkidle")
        assert page.evaluate(CONTRAST) == []


def test_the_theme_is_chosen_and_stays(open_page: OpenPage) -> None:
    page = open_page(color_scheme="light")
    scheme = "getComputedStyle(document.documentElement).colorScheme"
    page.get_by_role("button", name="System theme").click()
    page.get_by_role("button", name="Light theme").click()
    assert page.evaluate(scheme) == "dark"
    page.reload()
    expect(page.get_by_role("button", name="Dark theme")).to_be_visible()
    assert page.evaluate(scheme) == "dark"
