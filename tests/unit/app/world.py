"""The use cases over in-memory ports, wired once for all tests of this folder."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from ductor.actions.connectors.catalog import load_connectors
from ductor.actions.http import HttpRequest, HttpSettings
from ductor.api.auth import KeyIdentity
from ductor.app.access import Caller
from ductor.app.gate import Gate
from ductor.app.headers import HEAD, header_item, read_header, run_pk
from ductor.app.library import Library
from ductor.app.payloads import PayloadStore
from ductor.app.prices import Prices
from ductor.bootstrap.api import api_deps
from ductor.bootstrap.doors import Doors, NoFaults
from ductor.bootstrap.use_cases import UseCases
from ductor.model.intent import Intent
from ductor.model.json import JSON
from ductor.model.run import RunState
from ductor.ports import Blobs, Clock, Ids, Put, Queue, QueueName, Table, Unit
from ductor.testing.memory import (
    MemoryBlobs,
    MemoryQueue,
    MemorySecrets,
    MemoryTable,
    NullUnit,
    SeededIds,
    VirtualClock,
)

HELLO: dict[str, Any] = {
    "family_slug": "hello_world",
    "title": "Hello World",
    "steps": [
        {
            "ref": "greet",
            "type": "STEP_TYPE_DATAFLOW",
            "args": {
                "operation": "project",
                "input_expr": "TRIGGER",
                "redaction_policy": "none",
                "project": {"message": '"hello"'},
            },
        },
        {"ref": "pause", "type": "STEP_TYPE_WAIT", "args": {"duration": "2s"}},
    ],
    "edges": [{"source_ref": "greet", "target_ref": "pause", "type": "EDGE_TYPE_SUCCESS"}],
}


class EchoCatalog:
    """Knows one action, `core.echo`, and the built-in connectors; those reach servers on this machine."""

    connectors = load_connectors((), HttpRequest(HttpSettings(allow_private_networks=True)))

    def __contains__(self, name: str, /) -> bool:
        return name == "core.echo"

    def nearest(self, name: str) -> str | None:
        return "core.echo" if name.startswith("core") else None

    def validate_args(self, name: str, args: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
        return ()

    def needs_connection(self, name: str) -> bool:
        return False

    def connection_type(self, name: str) -> str:
        return ""

    def default_args(self, name: str) -> dict[str, JSON]:
        return {}


class World:
    """One installation with one tenant and a key that may do anything."""

    def __init__(
        self,
        table: Table | None = None,
        blobs: Blobs | None = None,
        intents: Queue | None = None,
        unit: Unit | None = None,
        ids: Ids | None = None,
    ) -> None:
        self.clock = VirtualClock()
        self.ids: Ids = ids or SeededIds(1, self.clock)
        self.table: Table = table or MemoryTable()
        self.intents: Queue = intents or MemoryQueue(QueueName.INTENTS, self.clock)
        self.payloads = PayloadStore(self.table, blobs or MemoryBlobs())
        self.library = Library(self.table)
        self.secrets = MemorySecrets()
        self.use = UseCases(
            Doors(
                table=self.table,
                payloads=self.payloads,
                library=self.library,
                gate=Gate(self.table),
                intents=self.intents,
                unit=unit or NullUnit(),
                clock=self.clock,
                ids=self.ids,
                faults=NoFaults(),
            )
        )
        self._open()

    def _open(self) -> None:
        self.scheduling = self.use.scheduling()
        self.deps = api_deps(
            self.use,
            identity=KeyIdentity(self.use.keys),
            registry=EchoCatalog(),
            secrets=self.secrets,
            prices=Prices(),
            bridge=self.use.bridge(self.rest, 1_000),
            scheduling=self.scheduling,
        )
        self.tenants, self.keys, self.definitions = self.use.tenants, self.deps.keys, self.deps.definitions
        self.admin, self.runs, self.triggers = self.deps.admin, self.deps.runs, self.deps.triggers
        self.controls, self.decisions, self.events = self.deps.controls, self.deps.decisions, self.deps.events
        self.signals, self.operations, self.bridge = self.deps.signals, self.deps.operations, self.deps.bridge
        self.continuations, self.trees, self.costs = self.deps.continuations, self.deps.trees, self.deps.costs
        self.tenant = self.tenants.create("first").id
        self.caller = self.new_caller(self.tenant)

    def rest(self, ms: int) -> bool:
        """Whoever waits for a task lets time pass."""
        self.clock.advance(ms)
        return True

    def new_caller(self, tenant: str, **limits: Any) -> Caller:
        issued = self.keys.issue(tenant, "test", roles=["admin"])
        caller = self.keys.authenticate(f"Bearer {issued.plaintext}")
        return msgspec.structs.replace(caller, **limits) if limits else caller

    def stranger(self) -> Caller:
        """A key of another tenant."""
        return self.new_caller(self.tenants.create("other").id)

    def published(self, document: Mapping[str, Any] = HELLO) -> str:
        """The id of a new published version."""
        draft = self.definitions.create(self.caller, document).definition
        return self.definitions.publish(self.caller, draft.id).published.id

    def sent(self) -> list[Intent]:
        """The intents waiting in the queue; they are taken out of it."""
        messages = self.intents.receive(10, visibility_ms=60_000)
        self.intents.ack([message.receipt for message in messages])
        return [msgspec.json.decode(message.body, type=Intent) for message in messages]

    def header(self, run_id: str) -> RunState:
        item = self.table.get(run_pk(run_id), HEAD)
        assert item is not None
        return read_header(item)

    def store(self, state: RunState) -> None:
        """Put a state as the coordinator's commit would."""
        version = state.version
        state.version += 1
        assert self.table.write([Put(header_item(state), version)]) is None


__all__ = ["HELLO", "Clock", "EchoCatalog", "World"]
