"""Makes docs/console.png: a run page of the shop, as the README shows it. `python -m tests.console.picture [FILE]`."""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path
from typing import Final

from playwright.sync_api import sync_playwright
from tests.console import shop
from tests.console.conftest import FLAGS
from tests.e2e.server import Server, publish

SIZE: Final = {"width": 1360, "height": 850}
LARGEST: Final = 250_000
"""Bytes that a picture may have."""


def main(place: Path) -> None:
    """Start a server, run an order up to its approval, and take the picture."""
    folder = Path(tempfile.mkdtemp())
    server = Server(folder / "data", {})
    try:
        server.start()
        _take(server, place)
    finally:
        server.stop()
        shutil.rmtree(folder, ignore_errors=True)
    assert place.stat().st_size <= LARGEST, f"{place} has {place.stat().st_size} bytes"


def _take(server: Server, place: Path) -> None:
    lines = (server.data / "env").read_text().splitlines()
    values = dict(line.removeprefix("export ").split("=", 1) for line in lines)
    with server.client() as client, sync_playwright() as playwright:
        run = shop.trigger(client, publish(client, shop.ORDER), shop.order(42, amount=4800))
        shop.wait_for(client, run, "waiting")
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)
        page = browser.new_page(viewport={"width": SIZE["width"], "height": SIZE["height"]}, color_scheme="light")
        page.goto(f"{server.url}/console/#key={values['DUCTOR_API_KEY']}&tenant={values['DUCTOR_TENANT_ID']}")
        page.goto(f"{server.url}/console/#/runs/{run}?node=review")
        page.get_by_role("button", name="Approve").wait_for()
        page.wait_for_load_state("networkidle")
        place.parent.mkdir(parents=True, exist_ok=True)
        page.screenshot(path=place)
        browser.close()


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "docs/console.png"))
