"""A real HTTP server that speaks as language models do: OpenAI's chat completions and Bedrock's Converse.

What it says is scripted; what it was asked is kept.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal


@dataclass
class Heard:
    """One request; header names in lower case."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]

    @property
    def bedrock(self) -> bool:
        return self.path.endswith("/converse")


@dataclass
class Say:
    """One answer. `calls` are (tool, input); `stop` is the wire's own word. A `status` other than 200 is an error.

    `gate`: the answer waits until it is set. `raw`: these bytes instead of an answer.
    """

    text: str = ""
    calls: Sequence[tuple[str, Any]] = ()
    stop: str = ""
    tokens: tuple[int, int] = (10, 5)
    status: int = 200
    code: str = ""
    message: str = "no"
    headers: dict[str, str] = field(default_factory=dict)
    gate: threading.Event | None = None
    raw: bytes | None = None
    refusal: str = ""


Script = Callable[[Heard], Say]


class Speaker(ThreadingHTTPServer):
    """`script` is asked for each answer; a list of answers is said in order, the last one for ever."""

    daemon_threads = True

    def __init__(self, script: Script | Sequence[Say]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.heard: list[Heard] = []
        self.asked = threading.Semaphore(0)
        self._lock = threading.Lock()
        self._script = script
        self._thread = threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def answer(self, heard: Heard) -> Say:
        with self._lock:
            self.heard.append(heard)
            place = len(self.heard) - 1
        self.asked.release()
        return self._script(heard) if callable(self._script) else self._script[min(place, len(self._script) - 1)]

    def __enter__(self) -> Speaker:
        self._thread.start()
        return self

    def __exit__(self, *ignored: object) -> None:
        self.shutdown()
        self._thread.join()
        self.server_close()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that hangs up early is what some tests are about."""


class _Handler(BaseHTTPRequestHandler):
    server: Speaker
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        data = self.rfile.read(int(self.headers.get("content-length", 0)))
        heard = Heard(self.path, {name.lower(): value for name, value in self.headers.items()}, json.loads(data))
        say = self.server.answer(heard)
        if say.gate is not None:
            say.gate.wait(30)
        headers = dict(say.headers)
        if say.status != 200 and heard.bedrock:
            headers["x-amzn-errortype"] = say.code
        body = say.raw if say.raw is not None else json.dumps(_body(heard, say)).encode()
        self.send_response(say.status)
        for name, value in {"content-type": "application/json", **headers}.items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Tests print nothing."""


def _body(heard: Heard, say: Say) -> dict[str, Any]:
    if heard.bedrock:
        return _converse(say) if say.status == 200 else {"message": say.message}
    return _completion(say) if say.status == 200 else {"error": {"code": say.code or None, "message": say.message}}


def _completion(say: Say) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": say.text or None}
    if say.refusal:
        message["refusal"] = say.refusal
    if say.calls:
        message["tool_calls"] = [
            {
                "id": f"c{place}",
                "type": "function",
                "function": {"name": name, "arguments": given if isinstance(given, str) else json.dumps(given)},
            }
            for place, (name, given) in enumerate(say.calls)
        ]
    stop = say.stop or ("tool_calls" if say.calls else "stop")
    usage = {"prompt_tokens": say.tokens[0], "completion_tokens": say.tokens[1], "total_tokens": sum(say.tokens)}
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "model": "m",
        "choices": [{"index": 0, "message": message, "finish_reason": stop}],
        "usage": usage,
    }


def _converse(say: Say) -> dict[str, Any]:
    content: list[dict[str, Any]] = [{"text": say.text}] if say.text else []
    content += [
        {"toolUse": {"toolUseId": f"t{place}", "name": name, "input": given}}
        for place, (name, given) in enumerate(say.calls)
    ]
    stop = say.stop or ("tool_use" if say.calls else "end_turn")
    return {
        "output": {"message": {"role": "assistant", "content": content}},
        "stopReason": stop,
        "usage": {"inputTokens": say.tokens[0], "outputTokens": say.tokens[1], "totalTokens": sum(say.tokens)},
        "metrics": {"latencyMs": 7},
    }


Format = Literal["openai", "bedrock"]
FORMATS: tuple[Format, ...] = ("openai", "bedrock")
