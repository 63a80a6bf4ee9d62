"""The web console: packaged files, served as they are to whoever asks. Knows no run; the page itself asks the API."""

from __future__ import annotations

import hashlib
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
    "Cache-Control": "no-cache",
}


@dataclass(frozen=True)
class Asset:
    """One file: its text, what it is, and the strong tag of exactly these bytes."""

    content_type: str
    text: str
    etag: str


def console_routes() -> tuple[Route, ...]:
    """The page at `/console/` and its files, up to three folders deep. No file is read before it is asked for."""
    deeper = (f"{_ROOT}/<a>", f"{_ROOT}/<a>/<b>", f"{_ROOT}/<a>/<b>/<c>")
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
    name = "/".join(call.ids.values()) or INDEX
    if name not in _files():
        raise route_unknown()
    asset = _asset(name)
    headers = {**_HEADERS, "ETag": asset.etag}
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
    text = _files()[name].read_text("utf-8")
    digest = hashlib.sha256(text.encode("utf-8")).hexdigest()
    return Asset(_TYPES[_suffix(name)], text, f'"{digest[:32]}"')


def _suffix(name: str) -> str:
    return name[name.rfind(".") :] if "." in name else ""
