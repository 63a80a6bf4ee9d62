"""The web console's files: what is served, how it is tagged, and what cannot be reached."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.resources import files

import pytest
from tests.api.world import ApiWorld, Reply


def read(world: ApiWorld, path: str, **headers: str) -> Reply:
    """The answer to a browser that has no key; header names in lower case."""
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    answer = world.call("GET", path, headers={"authorization": None, "x-tenant-id": None, **sent})
    return Reply(answer.status, {name.lower(): value for name, value in answer.headers.items()}, answer.text)


def test_the_page_needs_no_key_and_may_load_nothing_from_elsewhere(world: ApiWorld) -> None:
    answer = read(world, "/console/")
    assert (answer.status, answer.headers["content-type"]) == (200, "text/html; charset=utf-8")
    policy = dict(part.strip().split(" ", 1) for part in answer.headers["content-security-policy"].split(";"))
    assert policy["default-src"] == "'none'"
    assert policy["script-src"] == policy["style-src"] == policy["connect-src"] == "'self'"
    assert policy["frame-ancestors"] == policy["base-uri"] == policy["form-action"] == "'none'"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["referrer-policy"] == "no-referrer"


def test_the_address_without_a_slash_leads_to_the_page_under_any_prefix(world: ApiWorld) -> None:
    answer = read(world, "/console")
    assert (answer.status, answer.headers["location"]) == (308, "console/index.html")


@pytest.mark.parametrize(
    ("path", "content_type"),
    [
        ("/console/index.html", "text/html; charset=utf-8"),
        ("/console/icon.svg", "image/svg+xml"),
        ("/console/styles/tokens.css", "text/css; charset=utf-8"),
        ("/console/js/main.js", "text/javascript; charset=utf-8"),
        ("/console/js/ui/table.js", "text/javascript; charset=utf-8"),
    ],
)
def test_files_say_what_they_are(world: ApiWorld, path: str, content_type: str) -> None:
    answer = read(world, path)
    assert (answer.status, answer.headers["content-type"]) == (200, content_type)
    if not path.endswith(".html"):
        assert answer.text == (files("ductor.console") / path.removeprefix("/console/")).read_text("utf-8")


def test_a_file_that_the_browser_holds_is_not_sent_again(world: ApiWorld) -> None:
    first = read(world, "/console/js/main.js")
    tag = first.headers["etag"]
    assert re.fullmatch(r'"[0-9a-f]{32}"', tag)
    assert first.headers["cache-control"] == "no-cache"
    for held in (tag, f'"other", {tag}', f"W/{tag}", "*"):
        again = read(world, "/console/js/main.js", if_none_match=held)
        assert (again.status, again.text, again.headers["etag"]) == (304, "", tag)
    assert read(world, "/console/js/main.js", if_none_match='"other"').status == 200


def test_a_browser_asks_for_files_once_per_edition_and_for_the_page_each_time(world: ApiWorld) -> None:
    page = read(world, "/console/")
    assert page.headers["cache-control"] == "no-cache"
    edition = re.findall(r'src="(v-[0-9a-f]{16})/js/main\.js"', page.text)[0]
    for name in ("js/main.js", "js/ui/table.js", "styles/base.css"):
        kept = read(world, f"/console/{edition}/{name}")
        assert (kept.status, kept.headers["cache-control"]) == (200, "public, max-age=31536000, immutable")
        assert kept.text == read(world, f"/console/{name}").text


def test_a_page_of_another_release_gets_files_that_it_may_not_keep(world: ApiWorld) -> None:
    answer = read(world, "/console/v-0123456789abcdef/js/main.js")
    assert (answer.status, answer.headers["cache-control"]) == (200, "no-cache")


@pytest.mark.parametrize(
    "path",
    [
        "/console/../app.py",
        "/console/v-0123456789abcdef/",
        "/console/v-0123456789abcdef/../../app.py",
        "/console/v-0123456789abcdef/v-0123456789abcdef/js/main.js",
        "/console/js/../../app.py",
        "/console/js/..%2f..%2fapp.py",
        "/console/js/ui/../../__init__.py",
        "/console/__init__.py",
        "/console/%2fetc%2fpasswd",
        "/console//etc/passwd",
        "/console/js",
        "/console/js/",
        "/console/js/nothing.js",
        "/console/js/ui/deep/er/table.js",
        "/console/js/main.js\x00.css",
    ],
)
def test_nothing_but_the_packaged_files_can_be_named(world: ApiWorld, path: str) -> None:
    answer = read(world, path)
    assert (answer.status, answer.codes) == (404, [("path", "ROUTE_UNKNOWN")])


def test_only_reading_is_offered(world: ApiWorld) -> None:
    assert world.call("POST", "/console/").status == 405


def test_everything_that_the_page_names_is_there(world: ApiWorld) -> None:
    page = read(world, "/console/").text
    named = re.findall(r'(?:href|src)="([^"]+)"', page)
    assert len(named) > 5
    for name in named:
        assert read(world, f"/console/{name}").status == 200, name


def test_every_import_of_a_script_leads_to_a_script(world: ApiWorld) -> None:
    scripts = _scripts()
    for name, text in scripts.items():
        folder = name.rpartition("/")[0].split("/")
        for target in re.findall(r"""(?:from|import)\s*\(?\s*["'](\.[^"']+)["']""", text):
            path = list(folder)
            for part in target.split("/"):
                if part == "..":
                    path.pop()
                elif part != ".":
                    path.append(part)
            assert "/".join(path) in scripts, f"{name} imports {target}"


def test_no_script_turns_data_into_markup_or_code() -> None:
    forbidden = re.compile(
        r"\b(innerHTML|outerHTML|insertAdjacentHTML|document\.write|createContextualFragment|DOMParser|srcdoc|eval\()"
    )
    assert {name: found[0] for name, text in _scripts().items() if (found := forbidden.search(text))} == {}


def test_files_keep_to_their_size() -> None:
    assert {name: size for name, text in _scripts().items() if (size := len(text.splitlines())) > 420} == {}


def test_no_file_is_read_before_it_is_asked_for() -> None:
    code = (
        "import sys; import ductor.api.routes.console as c; "
        "print('ductor.console' in sys.modules, c._files.cache_info().currsize)"
    )
    seen = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert seen.split() == ["False", "0"]


def _scripts() -> dict[str, str]:
    """Every script, by its path from the page."""
    found: dict[str, str] = {}
    folders = [("js/", files("ductor.console") / "js")]
    while folders:
        prefix, folder = folders.pop()
        for entry in folder.iterdir():
            if entry.is_dir():
                folders.append((f"{prefix}{entry.name}/", entry))
            elif entry.name.endswith(".js"):
                found[f"{prefix}{entry.name}"] = entry.read_text("utf-8")
    return found
