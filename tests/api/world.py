"""The API over in-memory ports, driven by events as API Gateway sends them; no HTTP in between."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import msgspec
from tests.unit.app.world import HELLO, World

from ductor.api.app import build_api
from ductor.model.enums import NodeStatus, RunStatus
from ductor.model.payload import Inline
from ductor.model.run import NodeState


@dataclass(frozen=True)
class Reply:
    """A response: its status, headers and parsed body."""

    status: int
    headers: dict[str, str]
    text: str

    @property
    def json(self) -> Any:
        return json.loads(self.text)

    @property
    def codes(self) -> list[tuple[str, str]]:
        """(field, code) of each error."""
        return [(item["field"], item["code"]) for item in self.json["errors"]]


class ApiWorld(World):
    """One installation behind its API, with a tenant and a key that may do anything."""

    def __init__(self) -> None:
        super().__init__()
        self.handler = build_api(self.deps)
        self.key = self.keys.issue(self.tenant, "test", roles=["admin"]).plaintext

    def event(
        self, method: str, path: str, body: Any = "", *, query: str = "", headers: dict[str, str | None] | None = None
    ) -> dict[str, Any]:
        """An HTTP API event. `body` is sent as it is when it is text, else as JSON. A header of None is left out."""
        text = body if isinstance(body, str) else json.dumps(body)
        given = {"authorization": f"Bearer {self.key}", "x-tenant-id": self.tenant, **(headers or {})}
        return {
            "version": "2.0",
            "routeKey": "ANY /{proxy+}",
            "rawPath": path,
            "rawQueryString": query,
            "headers": {name: value for name, value in given.items() if value is not None},
            "requestContext": {"http": {"method": method, "path": path}, "stage": "$default", "requestId": "gw-1"},
            "body": text,
            "isBase64Encoded": False,
        }

    def call(
        self, method: str, path: str, body: Any = "", *, query: str = "", headers: dict[str, str | None] | None = None
    ) -> Reply:
        return reply(self.handler(self.event(method, path, body, query=query, headers=headers), None))

    def as_stranger(self) -> dict[str, str | None]:
        """Headers of a key of another tenant, which may do anything there."""
        tenant = self.tenants.create("other").id
        key = self.keys.issue(tenant, "test", roles=["admin"]).plaintext
        return {"authorization": f"Bearer {key}", "x-tenant-id": tenant}

    def with_scopes(self, *scopes: str) -> dict[str, str | None]:
        """Headers of a key of this tenant with these scopes only."""
        return {"authorization": f"Bearer {self.keys.issue(self.tenant, 'narrow', scopes=scopes).plaintext}"}

    def draft(self, **changes: Any) -> dict[str, Any]:
        created = self.call("POST", "/api/workflow-definitions", {**HELLO, **changes})
        assert created.status == 201, created.text
        detail: dict[str, Any] = created.json["data"]
        return detail

    def triggered(self) -> str:
        """The id of a run that no coordinator has touched yet."""
        answer = self.call("POST", f"/api/v2/workflow-definitions/{self.published()}:trigger", {})
        assert answer.status == 202, answer.text
        return str(answer.json["run_id"])

    def completed(self) -> str:
        """The id of a run that has ended well."""
        run_id = self.triggered()
        state = self.header(run_id)
        state.status = RunStatus.COMPLETED
        state.started_at = state.finished_at = self.clock.now_ms()
        state.output = Inline({"greet": {"result": {"message": "hello"}}})
        now = self.clock.now_ms()
        greeting = Inline({"result": {"message": "hello"}})
        completed = NodeStatus.COMPLETED
        state.root.nodes["greet"] = NodeState(status=completed, started_at=now, finished_at=now, output=greeting)
        state.root.nodes["pause"] = NodeState(status=completed, started_at=now, finished_at=now)
        self.store(state)
        return run_id


def reply(response: dict[str, Any]) -> Reply:
    """A response as the gateway takes it; it must be one that JSON can carry."""
    msgspec.json.encode(response)
    return Reply(response["statusCode"], response["headers"], response["body"])
