"""`http.request`: call an HTTP API outside our networks. Never follows into private networks, never waits for ever."""

from __future__ import annotations

import base64
import codecs
import functools
import ssl
from collections.abc import Callable
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

import msgspec

from ductor.actions.action import Action
from ductor.actions.addresses import AddressRules, Resolver, system_resolver
from ductor.actions.context import ActionContext
from ductor.actions.errors import ActionError
from ductor.actions.exact import NotExactError, exact
from ductor.actions.http_args import MAX_TIMEOUT_MS, HttpArgs
from ductor.model.causation import HEADER as CAUSATION_HEADER
from ductor.model.json import JSON, decode

if TYPE_CHECKING:
    import httpx

    from ductor.actions.exchange import Answer, Request

DEFAULT_MAX_BODY_BYTES: Final = 1_048_576

_EXCERPT_BYTES: Final = 2_000
_RETRYABLE: Final = frozenset({408, 425, 429})


class HttpSettings(msgspec.Struct, frozen=True):
    """`allow_private_networks` opens private, loopback and shared networks; `allowed_hosts` may have any address.

    A longer body than `max_body_bytes` is cut and marked. `ca_file` replaces the trusted authorities (PEM).
    """

    allow_private_networks: bool = False
    allowed_hosts: tuple[str, ...] = ()
    max_body_bytes: int = DEFAULT_MAX_BODY_BYTES
    ca_file: str = ""


class HttpRequest:
    """The function behind `http.request`."""

    def __init__(self, settings: HttpSettings, resolver: Resolver = system_resolver) -> None:
        self._settings = settings
        hosts = tuple(host.lower().rstrip(".") for host in settings.allowed_hosts)
        self._rules = AddressRules(settings.allow_private_networks, hosts)
        self._resolver = resolver

    def __call__(self, args: HttpArgs, ctx: ActionContext) -> dict[str, JSON]:
        """Status, headers and body of the answer. Raises ActionError for a status that is not expected."""
        # Loaded by the first call only: a worker that calls nothing starts without it.
        from ductor.actions.exchange import Exchange, perform

        request = _request(args, ctx)
        exchange = Exchange(
            rules=self._rules,
            resolver=self._resolver,
            tls=_trusted(self._settings.ca_file),
            max_body_bytes=self._settings.max_body_bytes,
            seconds=args.timeout_ms / 1_000,
            expects=args.expects,
        )
        answer = perform(exchange, request, ctx)
        if not args.expects(answer.status):
            raise _unexpected(answer)
        return _output(answer)

    def trusts(self, host: str) -> bool:
        """Whether any address is allowed for this host; a secret may then go there over plain http."""
        return self._rules.allow_private or host.lower().rstrip(".") in self._rules.allowed_hosts


@functools.lru_cache(maxsize=4)
def _trusted(ca_file: str) -> ssl.SSLContext:
    """Read once per process: it costs some 20 ms. Two threads may both do it, with the same result."""
    import certifi

    return ssl.create_default_context(cafile=ca_file or certifi.where())


def action(function: Callable[[HttpArgs, ActionContext], dict[str, JSON]]) -> Action:
    """`http.request`, done by `function`."""
    return Action(
        name="http.request",
        function=function,
        args_model=HttpArgs,
        # The exchange has a limit of its own; this one only bounds it.
        timeout_ms=MAX_TIMEOUT_MS + 10_000,
        description="Calls an HTTP API and returns status, headers and body.",
    )


def _request(args: HttpArgs, ctx: ActionContext) -> Request:
    from ductor.actions.exchange import Request

    content, content_type = args.content()
    headers = {"accept": "*/*", "accept-encoding": "identity", "user-agent": "ductor"}
    if content_type:
        headers["content-type"] = content_type
    if ctx.idempotency_key:
        headers["idempotency-key"] = quote(ctx.idempotency_key, safe="/:._-~")
    if ctx.causation_depth is not None:
        headers[CAUSATION_HEADER] = str(ctx.causation_depth)
    headers.update((name.lower(), str(value)) for name, value in args.headers.items())
    return Request(args.method, _url(args), headers, content)


def _url(args: HttpArgs) -> httpx.URL:
    import httpx

    from ductor.actions.exchange import check_url

    try:
        url = httpx.URL(args.url)
    except httpx.InvalidURL:
        # Its text may show the credentials in the URL.
        raise ActionError("HTTP_URL_INVALID", "not a valid URL", retryable=False) from None
    check_url(url)
    return url.copy_merge_params(args.query) if args.query else url


def _unexpected(answer: Answer) -> ActionError:
    details: dict[str, JSON] = {"status": answer.status, **retry_after(answer.headers)}
    text, _ = _text(answer.content[:_EXCERPT_BYTES], answer.headers, cut=True)
    if text:
        details["body"] = text
    retryable = answer.status in _RETRYABLE or answer.status >= 500
    return ActionError(f"HTTP_{answer.status}", f"the server answered {answer.status}", retryable, details)


def retry_after(headers: dict[str, str]) -> dict[str, JSON]:
    """The text as it came and, in ms, how long from the moment of the answer: by the server's own clock, not ours."""
    text = headers.get("retry-after", "").strip()[:100]
    if not text:
        return {}
    if text.isascii() and text.isdigit() and len(text) <= 9:
        return {"retry_after": text, "retry_after_ms": int(text) * 1_000}
    try:
        delay = parsedate_to_datetime(text) - parsedate_to_datetime(headers.get("date", ""))
    except (TypeError, ValueError):
        return {"retry_after": text}
    return {"retry_after": text, "retry_after_ms": max(0, round(delay.total_seconds() * 1_000))}


def _output(answer: Answer) -> dict[str, JSON]:
    output: dict[str, JSON] = {"status": answer.status, "headers": answer.headers, "body": None}
    if answer.truncated:
        output["truncated"] = True
    if not answer.content:
        return output
    text, faithful = _text(answer.content, answer.headers, cut=answer.truncated)
    if not faithful:
        # A picture is no text; half of it replaced by question marks would help nobody.
        output["body_base64"] = base64.b64encode(answer.content).decode("ascii")
    elif answer.truncated or not _says_json(answer.headers):
        output["body"] = text
    else:
        output["body"] = _json_or_text(answer.content, text)
    return output


def _json_or_text(content: bytes, text: str) -> JSON:
    """A body that says it is JSON and is not, or holds what no step could hold, stays a text."""
    try:
        return exact(decode(content), "body")[0]
    except (NotExactError, ValueError, RecursionError):
        return text


def _says_json(headers: dict[str, str]) -> bool:
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    return kind == "application/json" or kind.endswith("+json")


def _text(content: bytes, headers: dict[str, str], *, cut: bool) -> tuple[str, bool]:
    """The text in the charset that the server names, UTF-8 otherwise, and whether it is faithful.

    With `cut`, half a character at the end is dropped.
    """
    decoder = codecs.getincrementaldecoder(_charset(headers))
    try:
        return decoder("strict").decode(content, final=not cut), True
    except UnicodeError:
        return decoder("replace").decode(content, final=not cut), False


def _charset(headers: dict[str, str]) -> str:
    from email.message import Message

    message = Message()
    message["content-type"] = headers.get("content-type", "")
    named = message.get_content_charset("utf-8")
    try:
        # Some of Python's codecs are no charsets (base64, zip): those decode to bytes or unfold.
        return named if codecs.lookup(named)._is_text_encoding else "utf-8"
    except LookupError:
        return "utf-8"
