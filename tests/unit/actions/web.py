"""A real HTTP server whose answers a test writes, and names that only the test resolves."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Callable, Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import msgspec

from ductor.actions.action import Action
from ductor.actions.context import ActionContext
from ductor.actions.execute import execute
from ductor.actions.http import HttpRequest, HttpSettings
from ductor.actions.http_args import HttpArgs


class Seen(msgspec.Struct):
    """One request as the server got it; header names in lower case."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes


Reply = Callable[["Handler", Seen], None]


class Handler(BaseHTTPRequestHandler):
    server: Web

    def _serve(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        seen = Seen(self.command, self.path, {name.lower(): value for name, value in self.headers.items()}, body)
        self.server.seen.append(seen)
        try:
            self.server.replies[self.path.partition("?")[0]](self, seen)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    def __getattr__(self, name: str) -> Any:
        if name.startswith("do_"):
            return self._serve
        raise AttributeError(name)

    def answer(self, status: int, body: bytes = b"", **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Tests print nothing."""


class Web(ThreadingHTTPServer):
    """`replies` by path; `seen` in order of arrival. `gone` is set when the test is over."""

    daemon_threads = True

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        if tls is not None:
            self.socket = tls.wrap_socket(self.socket, server_side=True)
        self.replies: dict[str, Reply] = {}
        self.seen: list[Seen] = []
        self.gone = threading.Event()
        self._thread = threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True)

    @property
    def port(self) -> int:
        return int(self.server_address[1])

    def on(self, path: str, status: int, body: bytes = b"", **headers: str) -> None:
        self.replies[path] = lambda handler, seen: handler.answer(status, body, **headers)

    def __enter__(self) -> Web:
        self._thread.start()
        return self

    def __exit__(self, *ignored: object) -> None:
        self.gone.set()
        self.shutdown()
        self._thread.join()
        self.server_close()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that hangs up early is what some tests are about."""


class Names:
    """A resolver with a fixed answer per host; `asked` lists the look-ups."""

    def __init__(self, answers: Mapping[str, Sequence[str]]) -> None:
        self._answers = answers
        self.asked: list[str] = []

    def __call__(self, host: str, port: int) -> Sequence[str]:
        del port
        self.asked.append(host)
        if host not in self._answers:
            raise OSError("Name or service not known")
        return self._answers[host]


def call(
    args: Mapping[str, Any],
    names: Names,
    settings: HttpSettings | None = None,
    ctx: ActionContext | None = None,
) -> Any:
    """The output of one `http.request`; `api.test` may have any address unless `settings` say otherwise."""
    function = HttpRequest(settings or HttpSettings(allowed_hosts=("api.test",)), names)
    action = Action(name="http.request", function=function, args_model=HttpArgs)
    return execute(action, dict(args), ctx or ActionContext())[0]
