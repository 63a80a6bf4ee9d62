"""Routes as data, and the one wrapper around all of them: identity, errors and rendering, on Powertools' resolver."""

from __future__ import annotations

import json
import sys
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from aws_lambda_powertools.event_handler import Response
from pydantic import BaseModel

from ductor.api.auth import Identity
from ductor.api.call import Call
from ductor.api.errors import (
    STATUS,
    HttpRefusedError,
    error_answer,
    headers_for,
    internal,
    method_not_allowed,
    route_unknown,
    stored_too_large,
    unavailable,
)
from ductor.api.models.common import AnswerModel
from ductor.api.resolver import ThreadedResolver
from ductor.app.access import require_tenant
from ductor.app.rate_limit import RateLimit, RateLimitedError
from ductor.model.errors import RefusedError
from ductor.ports import Clock, Ids, ItemTooLargeError, UnavailableError

_JSON: Final = "application/json"
_ADMIN: Final = "/api/admin/"


@dataclass(frozen=True)
class Page:
    """An answer that is not a model: a document of its own content type."""

    content_type: str
    body: str


@dataclass(frozen=True)
class Raw:
    """An answer whose status and headers the route itself decides."""

    status: int
    content_type: str
    body: str
    headers: Mapping[str, str]


@dataclass(frozen=True)
class Elsewhere:
    """303: what was asked for is read at `location`. `answer` says the same in the body."""

    location: str
    answer: AnswerModel


@dataclass(frozen=True)
class Route:
    """One route. `path` has parameters as `<name>`; `body` and `answer` are its models.

    `scope` is what the use case asks of the caller, here only for the document. `open` routes need no key. `query`
    names the parameters; a trailing `.` stands for any name that starts so. One of a route that `seeks` names what must
    exist, as ids in paths do. Only `listed` routes are documented.
    """

    method: str
    path: str
    summary: str
    handle: Callable[[Call], AnswerModel | Page | Raw | Elsewhere]
    answer: type[BaseModel] | None = None
    body: type[BaseModel] | None = None
    query: tuple[str, ...] = ()
    scope: str = ""
    status: int = 200
    open: bool = False
    seeks: bool = False
    listed: bool = True


class Router:
    """Runs routes. Safe for several threads; nothing that a client sends makes it raise."""

    def __init__(
        self, routes: tuple[Route, ...], identity: Identity, clock: Clock, ids: Ids, rates: RateLimit | None = None
    ) -> None:
        self._identity = identity
        self._rates = rates
        self._clock = clock
        self._ids = ids
        self._resolver = ThreadedResolver()
        for route in routes:
            self._resolver.add(route.method, route.path, self._endpoint(route))
        self._resolver.not_found(self._not_found)
        self._resolver.seal()

    def __call__(self, event: dict[str, Any], context: Any = None) -> dict[str, Any]:
        """The response (payload format 2.0) to an API Gateway HTTP API event (payload format 2.0)."""
        http = event["requestContext"]["http"]
        if http["method"] != "HEAD":
            return self._resolver.resolve(event, context)
        as_get = {**event, "requestContext": {**event["requestContext"], "http": {**http, "method": "GET"}}}
        return {**self._resolver.resolve(as_get, context), "body": "", "isBase64Encoded": False}

    def _endpoint(self, route: Route) -> Callable[..., Response[Any]]:
        def endpoint(**ids: str) -> Response[Any]:
            call = self._call(ids)
            return self._guarded(call, lambda: self._run(route, call))

        return endpoint

    def _run(self, route: Route, call: Call) -> Response[Any]:
        if not route.open:
            call.caller = self._identity(self._resolver.current_event.raw_event)
            require_tenant(call.caller, call.headers.get("x-tenant-id"))
            # A limit that is too low must still let itself be raised.
            if self._rates is not None and not route.path.startswith(_ADMIN):
                self._rates.pass_one(call.caller.tenant)
            if not route.query:
                call.query()  # a parameter that nobody reads would be one that somebody relies on
        answer = route.handle(call)
        if isinstance(answer, Page):
            return _response(route.status, answer.body, answer.content_type)
        if isinstance(answer, Raw):
            return _response(answer.status, answer.body, answer.content_type, answer.headers)
        if isinstance(answer, Elsewhere):
            headers = {"Location": answer.location, "Cache-Control": "no-store"}
            return _response(303, answer.answer.model_dump_json(), headers=headers)
        return _response(route.status, answer.model_dump_json())

    def _not_found(self, _: Exception) -> Response[Any]:
        call = self._call({})

        def refuse() -> Response[Any]:
            allowed = self._resolver.methods_for(self._resolver.current_event.path)
            raise method_not_allowed(allowed) if allowed else route_unknown()

        return self._guarded(call, refuse)

    def _call(self, ids: Mapping[str, str]) -> Call:
        return Call(self._resolver.current_event.raw_event, ids, self._clock, self._ids)

    def _guarded(self, call: Call, run: Callable[[], Response[Any]]) -> Response[Any]:
        try:
            return run()
        except RateLimitedError as limited:
            return _refusal(call, limited, 429, {"Retry-After": str(limited.retry_after_s)})
        except RefusedError as refused:
            return _refusal(call, refused, STATUS[refused.error_code])
        except HttpRefusedError as refused:
            return _refusal(call, refused.refused, refused.status, refused.headers)
        except ItemTooLargeError:
            _log(call, "warning", "does not fit into a row")
            return _refusal(call, stored_too_large(), 413)
        except UnavailableError:
            _log(call, "warning", "unavailable")
            return _refusal(call, unavailable(), 503)
        except Exception:  # noqa: BLE001 - the boundary: a fault becomes a log entry and an answer that names it
            _log(call, "error", "unexpected fault")
            return _refusal(call, internal(call.trace_id), 500)


def _refusal(call: Call, refused: RefusedError, status: int, headers: Mapping[str, str] | None = None) -> Response[Any]:
    body = error_answer(refused, call.metadata()).model_dump_json()
    return _response(status, body, headers={**headers_for(status), **(headers or {})})


def _response(
    status: int, body: str, content_type: str = _JSON, headers: Mapping[str, str] | None = None
) -> Response[Any]:
    return Response(status_code=status, content_type=content_type, body=body, headers={**(headers or {})})


def _log(call: Call, level: str, message: str) -> None:
    """One JSON line on stderr with what the client was not told. Call it while the exception is being handled."""
    line = {
        "level": level,
        "message": message,
        "trace_id": call.trace_id,
        "request_id": call.request_id,
        "method": call.method,
        "path": call.path,
        "exception": traceback.format_exc(limit=-20),
    }
    sys.stderr.write(json.dumps(line) + "\n")
