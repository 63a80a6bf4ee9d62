"""The web console: packaged files, served as they are to whoever asks. Knows no run; the page itself asks the API."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources.abc import Traversable
from typing import Final

from ductor.api.call import Call
from ductor.api.errors import route_unknown
from ductor.api.routing import Raw, Route

CONTENT_SECURITY_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
INDEX: Final = "index.html"

_ROOT: Final = "/console"
_TYPES: Final = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
_HEADERS: Final = {
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
_ASKED_EACH_TIME: Final = "no-cache"
_KEPT_FOR_EVER: Final = "public, max-age=31536000, immutable"
_EDITION: Final = re.compile(r"v-[0-9a-f]{16}")
_NAMED: Final = re.compile(r'(?<==")(?=(?:js|styles)/)')
"""Where the page names a script or a style."""


@dataclass(frozen=True)
class Asset:
    """One file: its text, what it is, and the strong tag of exactly these bytes."""

    content_type: str
    text: str
    etag: str


def console_routes() -> tuple[Route, ...]:
    """The page at `/console/` and its files. No file is read before it is asked for.

    Files also have addresses that begin with the edition, a digest of all of them. Those the page names, and scripts
    name each other relatively: so a browser asks for each file once per release, and for the page each time.
    """
    deeper = (f"{_ROOT}/<a>", f"{_ROOT}/<a>/<b>", f"{_ROOT}/<a>/<b>/<c>", f"{_ROOT}/<a>/<b>/<c>/<d>")
    return (
        Route("GET", _ROOT, "The web console", _redirect, open=True, listed=False),
        Route("GET", f"{_ROOT}/", "The web console", _file, open=True, listed=False),
        *(Route("GET", path, "A file of the web console", _file, open=True, listed=False) for path in deeper),
    )


def _redirect(_: Call) -> Raw:
    """Relative, because the API may lie under a prefix that it does not know.

    To the page's name, because gateways differ in what they make of a slash at the end.
    """
    return Raw(308, "text/plain; charset=utf-8", "", {"Location": f"console/{INDEX}", "Cache-Control": "no-cache"})


def _file(call: Call) -> Raw:
    parts = list(call.ids.values()) or [INDEX]
    edition = parts.pop(0) if _EDITION.fullmatch(parts[0]) else ""
    name = "/".join(parts)
    if name not in _files():
        raise route_unknown()
    asset = _page() if name == INDEX else _asset(name)
    # A page of another release, still open in some tab, gets the files of this one, and may not keep them.
    caching = _KEPT_FOR_EVER if edition and edition == _edition() else _ASKED_EACH_TIME
    headers = {**_HEADERS, "Cache-Control": caching, "ETag": asset.etag}
    if _known(call.headers, asset.etag):
        return Raw(304, asset.content_type, "", headers)
    return Raw(200, asset.content_type, asset.text, headers)


def _known(headers: Mapping[str, str], etag: str) -> bool:
    """Whether the browser holds these bytes. A gateway may have weakened the tag on its way."""
    held = [one.strip().removeprefix("W/") for one in headers.get("if-none-match", "").split(",")]
    return etag in held or held == ["*"]


@cache
def _files() -> dict[str, Traversable]:
    """Every file that is served, by its path: nothing else can be named."""
    from importlib.resources import files

    return dict(_walk(files("ductor.console"), ""))


def _walk(folder: Traversable, prefix: str) -> Iterator[tuple[str, Traversable]]:
    for entry in folder.iterdir():
        if entry.is_dir():
            yield from _walk(entry, f"{prefix}{entry.name}/")
        elif _suffix(entry.name) in _TYPES:
            yield f"{prefix}{entry.name}", entry


@cache
def _asset(name: str) -> Asset:
    return _tagged(name, _files()[name].read_text("utf-8"))


@cache
def _page() -> Asset:
    """The page with this edition before every script and style that it names."""
    return _tagged(INDEX, _NAMED.sub(f"{_edition()}/", _asset(INDEX).text))


@cache
def _edition() -> str:
    tags = "".join(_asset(name).etag for name in sorted(_files()))
    return f"v-{hashlib.sha256(tags.encode()).hexdigest()[:16]}"


def _tagged(name: str, text: str) -> Asset:
    digest = hashlib.sha256(text.encode("utf-8")).hexdigest()
    return Asset(_TYPES[_suffix(name)], text, f'"{digest[:32]}"')


def _suffix(name: str) -> str:
    return name[name.rfind(".") :] if "." in name else ""
