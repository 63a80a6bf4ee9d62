"""One server with a shop on it, one browser, and pages that fail their test when the console complains."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import httpx
import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright
from tests.console import shop
from tests.e2e.server import Server, publish

# Generous: a machine that is busy with other suites is no fault of the console.
PATIENCE_MS: Final = 20_000
expect.set_options(timeout=PATIENCE_MS)

WIDE: Final = (1280, 800)
PHONE: Final = (390, 844)

# Nothing that calls home, and nothing that needs a screen.
FLAGS: Final = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@dataclass(frozen=True)
class Shop:
    """A running server, its client and key, the published workflows, and one run of each kind."""

    server: Server
    client: httpx.Client
    key: str
    tenant: str
    orders: str
    onboarding: str
    runs: dict[str, str]

    @property
    def url(self) -> str:
        return f"{self.server.url}/console/"

    def link(self, to: str = "/runs") -> str:
        """An address that signs in and goes on to a page."""
        query = httpx.QueryParams({"key": self.key, "tenant": self.tenant, "to": to})
        return f"{self.url}#{query}"


@pytest.fixture(scope="session")
def counter(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    """The shop; tests trigger runs of their own and leave its runs as they are."""
    server = Server(tmp_path_factory.mktemp("console") / "data", {})
    try:
        server.start()
        lines = (server.data / "env").read_text().splitlines()
        values = dict(line.removeprefix("export ").split("=", 1) for line in lines)
        with server.client() as client:
            orders, onboarding = publish(client, shop.ORDER), publish(client, shop.ONBOARDING)
            runs = shop.open_shop(client, orders, onboarding)
            key, tenant = values["DUCTOR_API_KEY"], values["DUCTOR_TENANT_ID"]
            yield Shop(server, client, key, tenant, orders, onboarding, runs)
    finally:
        server.stop()


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    path = os.environ.get("CHROMIUM") or shutil.which("chromium")
    assert path, "these tests need Chromium: apt-get install chromium, or say where it is with CHROMIUM"
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield running
        running.close()


OpenPage = Callable[..., Page]


@pytest.fixture
def open_page(browser: Browser, counter: Shop) -> Iterator[OpenPage]:
    """Opens pages, signed in unless said otherwise.

    A script that fails or breaks the policy fails the test, unless the page is not to be `heard`.
    """
    complaints: list[str] = []
    contexts = []

    def opened(
        to: str = "/runs", *, signed_in: bool = True, size: tuple[int, int] = WIDE, heard: bool = True, **options: Any
    ) -> Page:
        context = browser.new_context(viewport={"width": size[0], "height": size[1]}, **options)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(PATIENCE_MS)
        if heard:
            page.on("pageerror", lambda error: complaints.append(f"error: {error}"))
            page.on("console", lambda message: complaints.append(message.text) if _matters(message) else None)
        page.goto(counter.link(to) if signed_in else f"{counter.url}#{to}")
        return page

    yield opened
    for context in contexts:
        context.close()
    assert complaints == []


def _matters(message: Any) -> bool:
    """The browser itself logs refusals of the API; everything else on that level is a fault."""
    refused = "Failed to load resource" in message.text and "/api/" in str(message.location.get("url"))
    return message.type == "error" and not refused
