"""What needs no key: health, the OpenAPI document and the page that shows it."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from typing import Final

from ductor import __version__
from ductor.api.call import Call
from ductor.api.models.common import AnswerModel, Metadata
from ductor.api.openapi import Document, openapi_document
from ductor.api.routing import Page, Route

_HTML: Final = "text/html; charset=utf-8"


class Health(AnswerModel):
    """The server answers."""

    status: str = "ok"
    version: str = __version__
    metadata: Metadata


def open_routes(documented: Callable[[], tuple[Route, ...]]) -> tuple[Route, ...]:
    """`documented` gives all routes, these among them; it is called on the first request for the document."""

    @cache
    def document() -> Document:
        return openapi_document(documented(), __version__)

    @cache
    def page() -> str:
        return _swagger_page(json.dumps(document(), separators=(",", ":")))

    return (
        Route("GET", "/healthz", "Whether the server answers", _health, Health, open=True),
        Route(
            "GET",
            "/openapi.json",
            "This document",
            lambda _: Page("application/json", json.dumps(document())),
            open=True,
        ),
        Route("GET", "/docs", "This document as a page", lambda _: Page(_HTML, page()), open=True),
    )


def _health(call: Call) -> Health:
    return Health(metadata=call.metadata())


def _swagger_page(spec: str) -> str:
    """A page that holds everything itself: script and style come with Powertools, nothing is loaded from elsewhere."""
    from importlib.resources import files

    assets = files("aws_lambda_powertools.event_handler.openapi.swagger_ui")
    script = (assets / "swagger-ui-bundle.min.js").read_text("utf-8")
    style = (assets / "swagger-ui.min.css").read_text("utf-8")
    inert = spec.replace("<", "\\u003c")
    return (
        "<!doctype html><html lang=en><head><meta charset=utf-8><title>Ductor API</title>"
        f"<style>{style}</style></head><body><div id=ui></div><script>{script}</script>"
        f"<script>SwaggerUIBundle({{dom_id: '#ui', spec: {inert}}})</script></body></html>"
    )
