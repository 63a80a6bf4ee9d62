"""Connections, for administrators of a tenant."""

from __future__ import annotations

from typing import Final

from pydantic import SecretStr

from ductor.api.call import Call
from ductor.api.listed import PAGED, paged
from ductor.api.models.common import EmptyBody, Wrapped, WrappedPage
from ductor.api.models.connections import (
    ConnectionDetail,
    ConnectionFields,
    ConnectionTest,
    ConnectionType,
    NewConnection,
    RemovedConnection,
)
from ductor.api.routing import Route
from ductor.app.access import Scope, require
from ductor.app.administration import Administration
from ductor.app.connection_rows import ConnectionRow
from ductor.app.connection_settings import connection_kinds
from ductor.app.connections import ConnectionChanges

_ROOT: Final = "/api/connections"
_ONE: Final = f"{_ROOT}/<connection>"


class ConnectionRoutes:
    """`/api/connections`."""

    def __init__(self, admin: Administration) -> None:
        self._connections = admin.connections
        self._connecting = admin.connecting
        self._connectors = admin.connectors

    def routes(self) -> tuple[Route, ...]:
        admin, one = Scope.ADMIN.value, Wrapped[ConnectionDetail]
        types = WrappedPage[ConnectionType]
        return (
            Route("POST", _ROOT, "Create a connection", self._create, one, NewConnection, scope=admin, status=201),
            Route(
                "GET", _ROOT, "List connections", self._list, WrappedPage[ConnectionDetail], query=PAGED, scope=admin
            ),
            Route("GET", f"{_ROOT}/types", "List types of connections", self._types, types, scope=admin),
            Route("GET", _ONE, "Read a connection", self._get, one, scope=admin),
            Route("PATCH", _ONE, "Change a connection", self._update, one, ConnectionFields, scope=admin),
            Route("DELETE", _ONE, "Delete a connection", self._delete, Wrapped[RemovedConnection], scope=admin),
            Route(
                "POST",
                f"{_ONE}:test",
                "Call the other system with the stored secret",
                self._test,
                Wrapped[ConnectionTest],
                EmptyBody,
                scope=admin,
            ),
        )

    def _create(self, call: Call) -> Wrapped[ConnectionDetail]:
        body = call.body(NewConnection)
        return _one(call, self._connections.create(call.caller, body.slug, body.type, _changes(body)))

    def _list(self, call: Call) -> WrappedPage[ConnectionDetail]:
        shown = [_detail(row) for row in self._connections.list(call.caller)]
        data, cursor = paged(call, shown, lambda connection: connection.slug)
        return WrappedPage(data=data, next_cursor=cursor, metadata=call.metadata())

    def _types(self, call: Call) -> WrappedPage[ConnectionType]:
        require(call.caller, Scope.ADMIN)
        shown = [ConnectionType.model_validate(kind) for kind in connection_kinds(self._connectors)]
        return WrappedPage(data=shown, metadata=call.metadata())

    def _get(self, call: Call) -> Wrapped[ConnectionDetail]:
        return _one(call, self._connections.get(call.caller, call.ids["connection"]))

    def _update(self, call: Call) -> Wrapped[ConnectionDetail]:
        changes = _changes(call.body(ConnectionFields))
        return _one(call, self._connections.update(call.caller, call.ids["connection"], changes))

    def _delete(self, call: Call) -> Wrapped[RemovedConnection]:
        row = self._connections.delete(call.caller, call.ids["connection"])
        return Wrapped(data=RemovedConnection(id=row.id, slug=row.slug), metadata=call.metadata())

    def _test(self, call: Call) -> Wrapped[ConnectionTest]:
        call.body(EmptyBody)
        result = self._connecting.test(call.caller, call.ids["connection"])
        return Wrapped(data=ConnectionTest.model_validate(result), metadata=call.metadata())


def _changes(body: ConnectionFields) -> ConnectionChanges:
    given = body.secrets
    return ConnectionChanges(
        title=body.title,
        settings=body.settings,
        secrets=None if given is None else {name: _revealed(one) for name, one in given.items()},
        environments=None if body.environments is None else tuple(body.environments),
        active=body.active,
    )


def _revealed(secret: SecretStr | None) -> str | None:
    return None if secret is None else secret.get_secret_value()


def _one(call: Call, row: ConnectionRow) -> Wrapped[ConnectionDetail]:
    return Wrapped(data=_detail(row), metadata=call.metadata())


def _detail(row: ConnectionRow) -> ConnectionDetail:
    return ConnectionDetail(
        id=row.id,
        slug=row.slug,
        type=row.type,
        title=row.title,
        settings=row.settings,
        secrets=sorted(row.secrets),
        environments=list(row.environments),
        active=row.active,
        created_at=row.created_at,
        updated_at=row.updated_at,
        created_by=row.created_by,
        updated_by=row.updated_by,
    )
