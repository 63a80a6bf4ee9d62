"""The world of one test: the simulator with the definitions, connections, variables and mocks that the test gives.

Everything is put there by the use cases of production: what cannot be published cannot be tested.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from ductor.actions.action import Action
from ductor.actions.registry import ActionRegistry
from ductor.app.bridge_poll import TaskGiven
from ductor.app.connected_run import Resolver
from ductor.app.connecting import ENVIRONMENT_MODE, Connecting
from ductor.app.connection_rows import ConnectionRow, connections_pk, id_sk, row_item
from ductor.app.definitions import Definitions
from ductor.app.gate import Gate
from ductor.app.headers import HEAD, read_header, run_pk
from ductor.app.library import Library
from ductor.app.runs import Runs
from ductor.app.tenants import DEFAULT_ENVIRONMENT, Environment, Tenant, Tenants, environment_item
from ductor.app.tenants import TENANT as TENANT_SK
from ductor.model.errors import RefusedError, Violation
from ductor.model.json import JSON
from ductor.ports import Item, Put
from ductor.testing.cases.document import Given
from ductor.testing.cases.forms import epoch_ms
from ductor.testing.cases.mocks import AI_STEPS, Asked, Caller, Mocks, Said, child_action, stand_in
from ductor.testing.cases.outside import MockedOutside, task_types
from ductor.testing.doubles import Doubles
from ductor.testing.memory import MemorySecrets
from ductor.testing.world import TENANT, World

_ANY_TYPE: Final = "http"
"""The type of a connection that no action of the definition asks for by type."""

_MODEL: Final = "openai"
_AI: Final = frozenset(kind.value for kind in AI_STEPS)


class Workflow(msgspec.Struct, frozen=True):
    """A definition to publish: the name of its file, and its document."""

    name: str
    document: dict[str, JSON]


class UnpublishableError(Exception):
    """A workflow is not valid in the world of the test."""

    def __init__(self, workflow: str, refused: RefusedError) -> None:
        super().__init__(refused.message)
        self.workflow = workflow
        self.message = refused.message
        self.violations: tuple[Violation, ...] = refused.violations


class Published(msgspec.Struct, frozen=True):
    """What was published, to be put into further worlds: rows, and the ids of the families, the tested one last."""

    rows: tuple[Item, ...]
    families: tuple[tuple[str, str], ...]


class Stage(World):
    """A world without any fault until it is told otherwise. `families` maps published families to their ids."""

    def __init__(self, seed: int, actions: ActionRegistry, given: Given) -> None:
        self._actions = actions
        self._given = given
        self._callers: dict[str, Caller] = {}
        super().__init__(seed)
        # One process: what it held when it died nobody else can hold.
        del self.workers[1:]
        self.clock.set(epoch_ms(given.now))
        self.outside = self._mocked_outside()
        self.outsiders = []
        self.families: dict[str, str] = {}
        self.tenants = Tenants(self.table, self.clock, self.ids)
        self.runs = Runs(table=self.table, payloads=self.payloads, library=Library(self.table), tenants=self.tenants)

    def _mocked_outside(self) -> MockedOutside:
        bridge = self.use.bridge(lambda ms: False, 1)
        return MockedOutside(bridge, self.caller, self.clock, self.chaos, self._said_of)

    def _said_of(self, task: TaskGiven) -> Said | None:
        return self.mocks.say(task.task_type, task.input, Asked(task.run_id, task.node, task.attempt))

    def _doubles(self) -> Doubles:
        self.mocks = Mocks(self.ledger, self._actions, self._given, self._caller_of)
        return self.mocks

    def _step_actions(self) -> Mapping[str, Action]:
        return self.mocks.step_actions()

    def _resolver(self) -> Resolver:
        connectors = self._actions.connectors
        return Connecting(table=self._table, secrets=MemorySecrets(), clock=self.clock, connectors=connectors)

    def _gate(self) -> Gate | None:
        return Gate(self._table)

    def _caller_of(self, run_id: str) -> Caller:
        known = self._callers.get(run_id)
        if known is None:
            origin = self.state(run_id).origin
            known = self._callers[run_id] = Caller(origin.family_slug, self.value(run_id, origin.input))
        return known

    def ended(self, run_id: str) -> bool:
        """Whether the run has ended, without a look at its items."""
        item = self.table.get(run_pk(run_id), HEAD)
        return item is not None and read_header(item).status.terminal

    def set_up(self, workflows: Sequence[Workflow]) -> Published:
        """Publish the workflows, the last one being the one under test. Raises UnpublishableError."""
        documents = [workflow.document for workflow in workflows]
        self._open_outside(documents)
        self._add_tenant(documents)
        self._add_connections(documents)
        known = [action for name in self._actions.names() if (action := self._actions.get(name)) is not None]
        catalog = ActionRegistry([*known, child_action(_never)], self._actions.connectors)
        store = Definitions(self.table, self.clock, self.ids, catalog, self.tenants)
        own = workflows[-1].document.get("environment")
        mocked = [Workflow(f"workflows.{family}", stand_in(family, own)) for family in self._given.workflows]
        for workflow in (*mocked, *workflows):
            self._publish(store, workflow)
        self.mocks.main_family = next(reversed(self.families))
        return Published(tuple(self.table.rows()), tuple(self.families.items()))

    def _open_outside(self, documents: list[dict[str, JSON]]) -> None:
        """Workers take the types of task that the test mocks; all others wait for `resolve`."""
        steps = self._given.steps
        for environment, types in task_types(documents, DEFAULT_ENVIRONMENT).items():
            mocked = [kind for kind in types if kind in self._given.actions or steps.keys() & _doing(documents, kind)]
            self.outside.types[environment] = mocked

    def take_over(self, published: Published, workflows: Sequence[Workflow]) -> None:
        """Have what was published elsewhere for the same test."""
        self._open_outside([workflow.document for workflow in workflows])
        for row in published.rows:
            self.table.write([Put(row)])
        self.families = dict(published.families)
        self.mocks.main_family = next(reversed(self.families))

    def _publish(self, store: Definitions, workflow: Workflow) -> None:
        try:
            draft = store.create(self.caller, workflow.document)
            version = store.publish(self.caller, draft.definition.id).published
        except RefusedError as refused:
            raise UnpublishableError(workflow.name, refused) from None
        self.families[version.family_slug] = version.id

    def _add_tenant(self, documents: Sequence[dict[str, JSON]]) -> None:
        tenant = Tenant(id=TENANT, name="test", created_at=0, redaction_key="test")
        rows = [Item(pk=f"N#{TENANT}", sk=TENANT_SK, body=msgspec.json.encode(tenant))]
        mapped = {ref: ref for mode, ref, _ in _connections(documents, self._actions) if mode == ENVIRONMENT_MODE}
        mapped |= {slug: slug for slug in self._given.connections}
        keys = [document.get("environment") or DEFAULT_ENVIRONMENT for document in documents]
        for key in dict.fromkeys([DEFAULT_ENVIRONMENT, *(key for key in keys if isinstance(key, str))]):
            environment = Environment(key=key, variables=self._given.environment, connections=mapped)
            rows.append(environment_item(TENANT, environment, 1))
        self.table.write([Put(row) for row in rows])

    def _add_connections(self, documents: Sequence[dict[str, JSON]]) -> None:
        """Those that the test gives, and every one that a definition names: mocks do not use them."""
        types = {ref: kind for _, ref, kind in _connections(documents, self._actions)} | self._given.connections
        for slug, kind in types.items():
            row = ConnectionRow(id=f"connection-{slug}", tenant=TENANT, slug=slug, type=kind)
            by_id = Item(pk=connections_pk(TENANT), sk=id_sk(row.id), body=msgspec.json.encode(slug))
            self.table.write([Put(row_item(row, 1)), Put(by_id)])


def _doing(documents: Sequence[JSON], kind: str) -> set[str]:
    """How mocks may name the steps whose tasks are of this type."""
    names: set[str] = set()
    for document in documents:
        for step in document.get("steps") or ():
            args = step.get("args") if isinstance(step, dict) else None
            if isinstance(args, dict) and args.get("task_type") == kind:
                ref = str(step.get("ref") or step.get("id"))
                names |= {ref, f"{document.get('family_slug')}/{ref}"}
    return names


def _never(args: Any, ctx: Any) -> Any:
    """Definitions are only published with it; workers have their own."""
    raise AssertionError(f"a catalog runs nothing: {args}, {ctx}")


def _connections(documents: Sequence[JSON], actions: ActionRegistry) -> Iterator[tuple[str, str, str]]:
    """(mode, reference, type) of every connection that the documents name literally, or need without naming it."""
    for document in documents:
        for call in _calls(document):
            action, ref = call.get("action"), call.get("connection_ref")
            needed = actions.connection_type(action) if isinstance(action, str) and action in actions else ""
            name = ref or needed
            if isinstance(name, str) and name and "${{" not in name:
                asks = str(call.get("type", "")).lower().removeprefix("step_type_") in _AI
                yield str(call.get("connection_ref_mode") or ""), name, needed or (_MODEL if asks else _ANY_TYPE)
            for tool in _tools(call):
                if tool in actions and (kind := actions.connection_type(tool)):
                    yield "", kind, kind


def _tools(call: dict[str, JSON]) -> list[str]:
    """The actions that an agent may call by their names alone."""
    args = call.get("args")
    tools = args.get("tools") if isinstance(args, dict) else None
    return [tool for tool in tools if isinstance(tool, str)] if isinstance(tools, list) else []


def _calls(value: JSON) -> Iterator[dict[str, JSON]]:
    """Every object in a document that names an action or a connection."""
    if isinstance(value, dict):
        if value.keys() & {"action", "connection_ref", "args"}:
            yield value
        for item in value.values():
            yield from _calls(item)
    elif isinstance(value, list):
        for item in value:
            yield from _calls(item)
