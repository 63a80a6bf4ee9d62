"""The web console behind the gateway: its page and scripts are served without a key, under whatever prefix."""

from __future__ import annotations

import httpx
import pytest
from tests.deployed.stack import Stack

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(400)]


def test_the_page_and_its_scripts_are_served_without_a_key(stack: Stack) -> None:
    with httpx.Client(timeout=60, follow_redirects=True) as browser:
        page = browser.get(f"{stack.url}/console")
        assert (page.status_code, page.headers["content-type"]) == (200, "text/html; charset=utf-8")
        assert str(page.url) == f"{stack.url}/console/index.html"
        assert "script-src 'self'" in page.headers["content-security-policy"]
        script = browser.get(f"{stack.url}/console/js/ui/table.js")
        assert (script.status_code, script.headers["content-type"]) == (200, "text/javascript; charset=utf-8")
        held = {"If-None-Match": script.headers["etag"]}
        again = browser.get(f"{stack.url}/console/js/ui/table.js", headers=held)
        assert (again.status_code, again.content) == (304, b"")
        assert browser.get(f"{stack.url}/console/js/nothing.js").status_code == 404


def test_the_console_sees_what_its_key_may_see(stack: Stack) -> None:
    base = httpx.URL(f"{stack.url}/console/").join("../api/workflows/runs")
    with stack.client() as client:
        assert client.get(str(base)).status_code == 200
    assert httpx.get(str(base), timeout=60).status_code == 401


def test_the_output_of_the_stack_names_it(stack: Stack) -> None:
    assert stack.outputs["ConsoleUrl"].endswith("/console")
