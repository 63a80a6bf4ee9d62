"""One HTTP exchange with its redirects: every hop resolved once, checked, and connected to the checked address.

Never uses proxies or cookies, and never keeps a connection for a later exchange.
"""

from __future__ import annotations

import asyncio
import re
import ssl
import threading
from collections.abc import Callable, Sequence
from ipaddress import ip_address
from typing import TYPE_CHECKING, Final

import msgspec

from ductor.actions.addresses import AddressForbiddenError, AddressRules, Resolver
from ductor.actions.context import ActionContext
from ductor.actions.errors import ActionError, AttemptCancelledError

if TYPE_CHECKING:
    import httpx

MAX_REDIRECTS: Final = 5
MAX_URL: Final = 8_192
_POLL_SECONDS: Final = 0.1
_POLLS_PER_BEAT: Final = 10
_CONNECT_SECONDS: Final = 10.0
_MAX_ADDRESSES: Final = 4
_DEFAULT_PORTS: Final = {"http": 80, "https": 443}
_HOST: Final = re.compile(rb"[A-Za-z0-9._:-]+")
_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
# Any other header may be somebody's key, and its name does not tell.
_CROSS_ORIGIN: Final = frozenset(
    {"accept", "accept-encoding", "accept-language", "content-type", "idempotency-key", "user-agent"}
)


class Request(msgspec.Struct, frozen=True):
    """What to send. Header names are lower case and never those that frame a message."""

    method: str
    url: httpx.URL
    headers: dict[str, str]
    content: bytes


class Answer(msgspec.Struct, frozen=True):
    """What came back. `content` is decoded and cut at the limit, `truncated` says so."""

    status: int
    headers: dict[str, str]
    content: bytes
    truncated: bool


class Exchange(msgspec.Struct, frozen=True):
    """How to exchange. `expects` says whether a status is wanted as it is, even a redirect."""

    rules: AddressRules
    resolver: Resolver
    tls: ssl.SSLContext
    max_body_bytes: int
    seconds: float
    expects: Callable[[int], bool]

    async def run(self, request: Request) -> Answer:
        """The final answer. Raises ActionError; the time limit over everything is the caller's."""
        for _ in range(MAX_REDIRECTS + 1):
            answer = await self._hop(request)
            following = None if self.expects(answer.status) else _redirected(request, answer)
            if following is None:
                return answer
            request = following
        raise ActionError("HTTP_REDIRECT_REFUSED", f"more than {MAX_REDIRECTS} redirects", retryable=False)

    async def _hop(self, request: Request) -> Answer:
        import httpx

        check_url(request.url)
        addresses = await self._addresses(request.url)
        limits = httpx.Limits(max_connections=1, max_keepalive_connections=0)
        async with httpx.AsyncHTTPTransport(verify=self.tls, trust_env=False, limits=limits) as transport:
            try:
                return await self._first_reachable(transport, request, addresses)
            except (httpx.ConnectError, httpx.ConnectTimeout) as fault:
                raise ActionError("HTTP_CONNECT_FAILED", f"cannot connect to {_shown(request.url)}: {fault}") from None
            except httpx.TimeoutException:
                raise ActionError("HTTP_TIMEOUT", f"{_shown(request.url)} did not answer in time") from None
            except httpx.LocalProtocolError as fault:
                raise ActionError("HTTP_REQUEST_INVALID", str(fault), retryable=False) from None
            except httpx.TransportError as fault:
                message = f"the exchange with {_shown(request.url)} broke off: {type(fault).__name__}: {fault}"
                raise ActionError("HTTP_CONNECTION_LOST", message) from None

    async def _addresses(self, url: httpx.URL) -> Sequence[str]:
        port = url.port or _DEFAULT_PORTS[url.scheme]
        host = url.raw_host.decode("ascii")
        try:
            found = await resolve(self.resolver, host, port)
        except OSError as fault:
            raise ActionError("HTTP_DNS_FAILED", f"cannot resolve {host}: {fault}") from None
        if not found:
            raise ActionError("HTTP_DNS_FAILED", f"{host} has no address")
        try:
            self.rules.check(host, found)
        except AddressForbiddenError as fault:
            raise ActionError("HTTP_ADDRESS_FORBIDDEN", str(fault), retryable=False) from None
        return found[:_MAX_ADDRESSES]

    async def _first_reachable(
        self, transport: httpx.AsyncHTTPTransport, request: Request, addresses: Sequence[str]
    ) -> Answer:
        """Nothing has been sent when a connect fails, so the next address may be tried."""
        import httpx

        for address in addresses[:-1]:
            try:
                return await self._send(transport, request, address, len(addresses))
            except (httpx.ConnectError, httpx.ConnectTimeout):
                continue
        return await self._send(transport, request, addresses[-1], len(addresses))

    async def _send(
        self, transport: httpx.AsyncHTTPTransport, request: Request, address: str, candidates: int
    ) -> Answer:
        import httpx

        connect = min(_CONNECT_SECONDS, self.seconds / candidates)
        timeout = httpx.Timeout(self.seconds, connect=connect)
        sent = httpx.Request(
            request.method,
            request.url.copy_with(host=address),
            headers={"host": request.url.netloc.decode("ascii"), **request.headers},
            content=request.content or None,
            extensions={"timeout": timeout.as_dict(), "sni_hostname": _server_name(request.url)},
        )
        response = await transport.handle_async_request(sent)
        try:
            content, truncated = await self._read(response)
        finally:
            await response.aclose()
        headers = {name.lower(): value for name, value in response.headers.items() if name.lower() != "set-cookie"}
        return Answer(response.status_code, headers, content, truncated)

    async def _read(self, response: httpx.Response) -> tuple[bytes, bool]:
        # We ask for no compression; whoever compresses all the same is not decoded, so nothing can unfold.
        if response.headers.get("content-encoding", "identity").lower() != "identity":
            message = "the answer is compressed although none was asked for"
            raise ActionError("HTTP_BODY_INVALID", message, retryable=False, details={"status": response.status_code})
        content = bytearray()
        async for chunk in response.aiter_raw():
            content += chunk
            if len(content) > self.max_body_bytes:
                return bytes(content[: self.max_body_bytes]), True
        return bytes(content), False


def perform(exchange: Exchange, request: Request, ctx: ActionContext) -> Answer:
    """The final answer; the thread waits for it, with a heartbeat each second.

    Raises ActionError, and AttemptCancelledError within 0.1 s when the attempt is to stop.
    """
    return asyncio.run(_watched(exchange, request, ctx))


async def _watched(exchange: Exchange, request: Request, ctx: ActionContext) -> Answer:
    """The exchange under its time limit; ended early when the attempt is to stop."""
    running = asyncio.ensure_future(_limited(exchange, request))
    polls = 0
    try:
        while not (await asyncio.wait({running}, timeout=_POLL_SECONDS))[0]:
            polls += 1
            if ctx.cancelled:
                raise AttemptCancelledError("cancelled during an HTTP exchange")
            if polls % _POLLS_PER_BEAT == 0:
                ctx.heartbeat()
        return running.result()
    finally:
        if running.cancel():
            await asyncio.wait({running})


async def _limited(exchange: Exchange, request: Request) -> Answer:
    try:
        async with asyncio.timeout(exchange.seconds):
            return await exchange.run(request)
    except TimeoutError:
        message = f"the exchange was not complete after {round(exchange.seconds * 1_000)} ms"
        raise ActionError("HTTP_TIMEOUT", message) from None


async def resolve(resolver: Resolver, host: str, port: int) -> Sequence[str]:
    """`resolver` in a thread of its own: nothing can interrupt a name service, but nobody must wait for it either."""
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[Sequence[str]] = loop.create_future()

    def look_up() -> None:
        try:
            found: Sequence[str] | OSError = resolver(host, port)
        except OSError as fault:
            found = fault
        except UnicodeError as fault:
            # Labels over 63 characters fail in the codec, before any look-up.
            found = OSError(str(fault))
        try:
            loop.call_soon_threadsafe(_settle, answer, found)
        except RuntimeError:
            # The loop was closed: the time was up before the answer came.
            return

    threading.Thread(target=look_up, name="resolve", daemon=True).start()
    return await answer


def _settle(answer: asyncio.Future[Sequence[str]], found: Sequence[str] | OSError) -> None:
    if answer.done():
        return
    if isinstance(found, OSError):
        answer.set_exception(found)
    else:
        answer.set_result(found)


def check_url(url: httpx.URL) -> None:
    """Raises ActionError `HTTP_URL_INVALID`, never repeating a password."""
    reason = None
    if url.scheme not in _DEFAULT_PORTS:
        reason = "only http and https URLs are allowed"
    elif url.userinfo:
        reason = "credentials do not belong into a URL; send them as a header"
    elif _HOST.fullmatch(url.raw_host) is None:
        reason = "the URL names no host"
    elif url.port is not None and not 0 < url.port < 65_536:
        reason = "the port must be 1 to 65535"
    elif len(str(url)) > MAX_URL:
        reason = f"the URL is longer than {MAX_URL} characters"
    if reason is not None:
        raise ActionError("HTTP_URL_INVALID", reason, retryable=False)


def _redirected(request: Request, answer: Answer) -> Request | None:
    """The request that a redirect asks for, None when the answer is none."""
    location = answer.headers.get("location")
    if answer.status not in _REDIRECTS or location is None:
        return None
    url = _target(request.url, location)
    same_origin = _origin(url) == _origin(request.url)
    headers = {name: value for name, value in request.headers.items() if same_origin or name in _CROSS_ORIGIN}
    becomes_get = answer.status == 303 or (answer.status in {301, 302} and request.method == "POST")
    if not becomes_get or request.method == "HEAD":
        return Request(request.method, url, headers, request.content)
    headers.pop("content-type", None)
    return Request("GET", url, headers, b"")


def _target(url: httpx.URL, location: str) -> httpx.URL:
    import httpx

    try:
        target = url.join(location)
    except (httpx.InvalidURL, ValueError):
        raise ActionError("HTTP_REDIRECT_REFUSED", "redirected to an invalid URL", retryable=False) from None
    if url.scheme == "https" and target.scheme == "http":
        raise ActionError("HTTP_REDIRECT_REFUSED", "redirected from https to http", retryable=False)
    return target


def _origin(url: httpx.URL) -> tuple[str, bytes, int | None]:
    return url.scheme, url.raw_host, url.port or _DEFAULT_PORTS.get(url.scheme)


def _server_name(url: httpx.URL) -> str:
    """What TLS asks for and verifies: the name of the URL, whatever address is behind it."""
    return url.raw_host.decode("ascii").rstrip(".")


def _shown(url: httpx.URL) -> str:
    """Host and port; paths and queries may hold keys."""
    host = url.raw_host.decode("ascii")
    try:
        host = f"[{host}]" if ip_address(host).version == 6 else host
    except ValueError:
        pass
    return host if url.port is None else f"{host}:{url.port}"
