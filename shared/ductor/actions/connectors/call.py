"""Calls what a connector file describes: requests with the connection's secret, errors in the system's codes, pages.

Every request goes through the exchange of `http.request`: the same address rules, limits and cancellation.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final
from urllib.parse import urlencode, urlsplit

import msgspec
from pydantic import BaseModel, ValidationError

from ductor.actions import arguments
from ductor.actions.connection import Connection, basic_token
from ductor.actions.connectors.references import Values, at_path, filled, filled_path
from ductor.actions.connectors.schema import given
from ductor.actions.connectors.spec import Connector, Operation, Pagination, Request
from ductor.actions.context import ActionContext
from ductor.actions.errors import ActionError
from ductor.actions.http import HttpRequest, retry_after
from ductor.actions.http_args import HttpArgs
from ductor.model.errors import clip
from ductor.model.json import JSON

MAX_PAGES: Final = 50
MAX_ITEMS: Final = 1_000
_DEFAULT_ITEMS: Final = 100
_TEST_TIMEOUT_MS: Final = 10_000
_ANY_ANSWER: Final[list[int | str]] = ["200-299", "400-599"]
_RETRYABLE: Final = frozenset({408, 425, 429})
_CODE: Final = re.compile(r"[^A-Z0-9]+")
_NEXT: Final = re.compile(r'<([^>]{1,8000})>\s*;[^,]*\brel="?next\b')
_MAX_MESSAGE: Final = 1_000


class Answer(msgspec.Struct, frozen=True):
    """A successful answer: its body, and its headers in lower case."""

    body: JSON
    headers: dict[str, str]


class ConnectorAction:
    """The function behind one operation."""

    def __init__(self, connector: Connector, operation: Operation, http: HttpRequest) -> None:
        self._operation = operation
        self._caller = ConnectorCaller(connector, http)

    def __call__(self, args: BaseModel, ctx: ActionContext) -> dict[str, JSON]:
        """The operation's output. Raises ActionError in the system's codes, `CONNECTION_…` for a connection amiss."""
        connection = self._caller.connection(ctx)
        values: dict[str, Any] = {"args": given(args), "settings": dict(connection.settings), "results": {}}
        operation = self._operation
        if operation.pagination is not None:
            return self._all_pages(operation.pagination, values, connection, ctx)
        for place, request in enumerate(operation.requests):
            # Each request of a step has a key of its own; one key for two different requests would be refused.
            key = f"{ctx.idempotency_key}/{request.name}" if place and ctx.idempotency_key else ctx.idempotency_key
            keyed = msgspec.structs.replace(ctx, idempotency_key=key)
            answer = self._caller.send(request, values, connection, keyed, operation.timeout_ms)
            values["results"][request.name] = answer.body
        body = values["results"][operation.requests[-1].name]
        made = body if operation.output is None else filled(operation.output, values)
        return made if isinstance(made, dict) else {"body": made}

    def _all_pages(
        self, paging: Pagination, values: dict[str, Any], connection: Connection, ctx: ActionContext
    ) -> dict[str, JSON]:
        wanted = int(values["args"].get("max_items", _DEFAULT_ITEMS))
        found: list[JSON] = []
        more, pages = True, 0
        turns = self._caller.pages(self._operation, paging, values, connection, ctx)
        while more and len(found) < wanted and pages < MAX_PAGES:
            items, more = next(turns)
            found += items
            pages += 1
        return {"items": found[:wanted], "pages": pages, "has_more": more or len(found) > wanted}


class ConnectorCaller:
    """Sends one connector's requests."""

    def __init__(self, connector: Connector, http: HttpRequest) -> None:
        self._connector = connector
        self._http = http

    def connection(self, ctx: ActionContext) -> Connection:
        """The step's connection, of the right type. Raises ActionError (not retryable)."""
        name, found = self._connector.connector, ctx.connection
        if found is None:
            raise ActionError("CONNECTION_REQUIRED", f"name a connection of type {name}", retryable=False)
        if found.type != name:
            message = f"the connection {found.slug} is of type {found.type}; this action needs one of type {name}"
            raise ActionError("CONNECTION_TYPE_MISMATCH", message, retryable=False)
        return found

    def test(self, ctx: ActionContext) -> None:
        """One harmless request with the connection of `ctx`. Raises ActionError when it does not work."""
        connection = self.connection(ctx)
        if self._connector.test is None:
            raise ActionError("CONNECTION_TEST_UNSUPPORTED", "this type of connection has no test", retryable=False)
        values = {"args": {}, "settings": dict(connection.settings), "results": {}}
        self.send(self._connector.test, values, connection, ctx, _TEST_TIMEOUT_MS)

    def send(
        self, request: Request, values: Values, connection: Connection, ctx: ActionContext, timeout_ms: int
    ) -> Answer:
        """One request. Raises ActionError for an answer that is a failure."""
        url = self._base(connection) + filled_path(request.path, values)
        query = filled(request.query, values) or {}
        return self._exchange(request, url, query, values, connection, ctx, timeout_ms)

    def pages(
        self,
        operation: Operation,
        paging: Pagination,
        values: Values,
        connection: Connection,
        ctx: ActionContext,
    ) -> Iterator[tuple[list[JSON], bool]]:
        """Page after page: its items, and whether there is another one."""
        request = operation.requests[0]
        base = self._base(connection)
        url, query = base + filled_path(request.path, values), dict(filled(request.query, values) or {})
        more = True
        while more:
            answer = self._exchange(request, url, query, values, connection, ctx, operation.timeout_ms)
            listed = at_path(answer.body, paging.items)
            items = listed if isinstance(listed, list) else []
            following = _following(paging, answer, items)
            if paging.style == "link" and following:
                if not _same_origin(following, base):
                    raise ActionError("HTTP_REDIRECT_REFUSED", "the next page is on another host", retryable=False)
                url, query = following, {}
            elif following:
                query[paging.parameter] = following
            more = bool(following)
            yield items, more

    def _exchange(
        self,
        request: Request,
        url: str,
        query: Mapping[str, Any],
        values: Values,
        connection: Connection,
        ctx: ActionContext,
        timeout_ms: int,
    ) -> Answer:
        args = _http_args(
            method=request.method,
            url=url,
            query=query,
            headers={**self._connector.headers, **(filled(request.headers, values) or {}), **self._signed(connection)},
            timeout_ms=timeout_ms,
            expect_status=_ANY_ANSWER,
            **_content(request, values),
        )
        output = self._http(args, ctx)
        if output.get("truncated"):
            raise ActionError("HTTP_BODY_TOO_LARGE", "the answer is over the size limit", retryable=False)
        body, status, headers = output.get("body"), int(output["status"]), output["headers"]
        if status >= 400 or (self._connector.errors.failed and at_path(body, self._connector.errors.failed) is False):
            raise self._failure(status, body, headers, connection)
        return Answer(body, headers)

    def signed(self, args: HttpArgs, ctx: ActionContext) -> HttpArgs:
        """The args of an `http.request` with the secret of its connection, for URLs at the connection's host only.

        A URL that begins with `/` is below the connection's base_url. Raises ActionError.
        """
        connection = self.connection(ctx)
        base = self._base(connection)
        url = base + args.url if args.url.startswith("/") else args.url
        if not _same_origin(url, base):
            message = f"the URL is not at the host of the connection {connection.slug}"
            raise ActionError("CONNECTION_HOST_MISMATCH", message, retryable=False)
        secret = self._signed(connection)
        kept = {name: value for name, value in args.headers.items() if name.lower() not in secret}
        # A header that cannot be sent is found by the same rules as everybody's.
        _http_args(url=url, headers={**self._connector.headers, **secret})
        return args.model_copy(update={"url": url, "headers": {**kept, **secret}})

    def _base(self, connection: Connection) -> str:
        base = connection.setting("base_url") or self._connector.base_url
        parts = urlsplit(base)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ActionError("CONNECTION_INCOMPLETE", "the connection has no usable base_url", retryable=False)
        if parts.scheme == "http" and not self._http.trusts(parts.hostname):
            message = (
                f"a connection's secret is not sent over plain http to {parts.hostname}; "
                "use https, or name the host in DUCTOR_HTTP_ALLOWED_HOSTS of the server"
            )
            raise ActionError("CONNECTION_INSECURE", message, retryable=False)
        return base.rstrip("/")

    def _signed(self, connection: Connection) -> dict[str, str]:
        auth = self._connector.auth
        if auth.type == "none":
            return {}
        secret = connection.secret(auth.secret).reveal()
        if auth.type == "bearer":
            return {"authorization": f"Bearer {secret}"}
        if auth.type == "basic":
            return {"authorization": f"Basic {basic_token(connection.setting('username'), secret)}"}
        return {auth.header: secret}

    def _failure(self, status: int, body: JSON, headers: dict[str, str], connection: Connection) -> ActionError:
        rules = self._connector.errors
        own, said = at_path(body, rules.code), at_path(body, rules.message)
        code = f"HTTP_{status}"
        if rules.code and isinstance(own, str | int) and str(own):
            code = f"{self._connector.connector}_{own}".upper()[:100]
            code = _CODE.sub("_", code).strip("_")
        message = f"{self._connector.title or self._connector.connector} answered {status}"
        if rules.message and isinstance(said, str) and said:
            message = f"{message}: {clip(said, _MAX_MESSAGE)}"
        retryable = status in _RETRYABLE or status >= 500 or own in rules.retryable
        details = {"status": status, **({"code": own} if isinstance(own, str | int) else {}), **retry_after(headers)}
        return ActionError(code, connection.redact(message), retryable and own not in rules.final, details)


def _following(paging: Pagination, answer: Answer, items: list[JSON]) -> str:
    """What leads to the next page, empty on the last one."""
    if paging.style == "link":
        found = _NEXT.search(answer.headers.get("link", ""))
        return found[1] if found else ""
    if paging.style == "last_id":
        last = at_path(items[-1], "id") if items and at_path(answer.body, paging.more) is True else None
        return str(last) if isinstance(last, str | int) else ""
    cursor = at_path(answer.body, paging.cursor)
    return str(cursor) if isinstance(cursor, str | int) and items else ""


def _same_origin(url: str, base: str) -> bool:
    one, other = urlsplit(url), urlsplit(base)
    return (one.scheme, one.hostname, one.port) == (other.scheme, other.hostname, other.port)


def _http_args(**fields: Any) -> HttpArgs:
    try:
        return HttpArgs.model_validate(fields)
    except ValidationError as refused:
        # pydantic's own text would show the values, the secret among them.
        raise ActionError("HTTP_REQUEST_INVALID", arguments.described(refused), retryable=False) from None


def _content(request: Request, values: Values) -> dict[str, Any]:
    if request.json is not None:
        return {"json": filled(request.json, values) or {}}
    if request.form:
        pairs = list(_flat(filled(request.form, values) or {}, ""))
        return {"body": urlencode(pairs)}
    return {}


def _flat(value: Any, name: str) -> Iterator[tuple[str, str]]:
    """Form fields of a nested value, `metadata[order]` and `expand[0]` as Stripe and others read them."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _flat(item, f"{name}[{key}]" if name else str(key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _flat(item, f"{name}[{index}]")
    elif isinstance(value, bool):
        yield name, "true" if value else "false"
    elif value is not None:
        yield name, str(value)
