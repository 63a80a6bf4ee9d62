"""A scripted server behind the command line's client: answers by method and path, and remembers what it was asked."""

from __future__ import annotations

import json
from typing import Any

import httpx

from ductor.cli.access import Access
from ductor.cli.client import Client

ACCESS = Access("http://ductor.test", "dk_1_secret", "tenant-1")

Answer = tuple[int, Any] | Exception


class Server:
    """Answers each route with the next of its answers, the last one again and again."""

    def __init__(self, routes: dict[str, list[Answer]]) -> None:
        self.routes = routes
        self.requests: list[httpx.Request] = []

    def client(self) -> Client:
        return Client(ACCESS, transport=httpx.MockTransport(self._answer))

    def bodies(self, route: str) -> list[Any]:
        """The request bodies that a route got."""
        return [json.loads(request.content or b"null") for request in self.requests if _route(request) == route]

    def _answer(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        answers = self.routes[_route(request)]
        answer = answers.pop(0) if len(answers) > 1 else answers[0]
        if isinstance(answer, Exception):
            raise answer
        status, body = answer
        return (
            httpx.Response(status, json=body) if not isinstance(body, bytes) else httpx.Response(status, content=body)
        )


def _route(request: httpx.Request) -> str:
    return f"{request.method} {request.url.path}"


def snapshot(status: str, **nodes: Any) -> dict[str, Any]:
    """A snapshot answer; each node is its status or its document."""
    documents = {ref: node if isinstance(node, dict) else {"status": node} for ref, node in nodes.items()}
    return {"run_id": "run-1", "status": status, "nodes": documents, "metadata": {"fetched_at": "2026-01-01T00:00:05Z"}}
