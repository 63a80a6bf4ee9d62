"""From the reference that a step names to the connection that its action gets, at the last moment before the call."""

from __future__ import annotations

import re
from typing import Final

import msgspec

from ductor.actions.connection import Connection, Secret
from ductor.actions.connectors.catalog import Connectors
from ductor.actions.context import ActionContext
from ductor.actions.errors import ActionError
from ductor.app.access import Caller, Scope, require
from ductor.app.connection_rows import ConnectionRow, read_row
from ductor.app.refusals import not_found, precondition
from ductor.app.tenants import Environment, environment_sk
from ductor.model.attempt import AttemptTask
from ductor.ports import Clock, SecretLostError, Secrets, Table

ENVIRONMENT_MODE: Final = "environment"
_READS: Final = 3
_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,63}", re.ASCII)


class Tested(msgspec.Struct, frozen=True):
    """How a test call went. `code` and `message` say why it did not; neither holds a secret."""

    ok: bool
    took_ms: int
    code: str = ""
    message: str = ""


class Connecting:
    """Resolves references. What it returns holds secrets: it is handed to the action and kept nowhere."""

    def __init__(self, *, table: Table, secrets: Secrets, clock: Clock, connectors: Connectors) -> None:
        self._table = table
        self._secrets = secrets
        self._clock = clock
        self._connectors = connectors

    def find(self, tenant: str, environment: str, mode: str, ref: str) -> ConnectionRow | None:
        """The connection that `ref` means in `environment`: an id or slug, or (mode `environment`) a name mapped there.

        None when there is none, or none that runs of this environment may use.
        """
        if mode == ENVIRONMENT_MODE:
            ref = self._mapped(tenant, environment, ref)
        found = read_row(self._table, tenant, ref)
        return found[0] if found is not None and found[0].serves(environment) else None

    def resolve(self, task: AttemptTask) -> Connection | None:
        """The connection of an attempt, None when its step names none.

        Raises ActionError `CONNECTION_UNKNOWN` or `CONNECTION_UNREADABLE`, and UnavailableError when table or secrets
        cannot be read now.
        """
        if not task.connection_ref:
            return None
        slug = ""
        for _ in range(_READS):
            row = self.find(task.tenant, task.environment, task.connection_ref_mode, task.connection_ref)
            if row is None:
                raise _unknown(task)
            opened, slug = self._opened(row), row.slug
            # A secret that was replaced between the two reads is gone; the row then names the new one.
            if opened.secrets.keys() == row.secrets.keys():
                return opened
        message = f"the secrets of the connection {slug!r} are gone; give them anew"
        raise ActionError("CONNECTION_UNREADABLE", message)

    def test(self, caller: Caller, ref: str) -> Tested:
        """One harmless request to the other system with the stored secret.

        Raises NOT_FOUND, and FAILED_PRECONDITION `CONNECTION_TEST_UNSUPPORTED` for a type that has no test. What the
        other side answers is a result, not a refusal.
        """
        require(caller, Scope.ADMIN)
        found = read_row(self._table, caller.tenant, ref)
        if found is None:
            raise not_found("CONNECTION_UNKNOWN", "this tenant has no such connection", "connection")
        connector = self._connectors.get(found[0].type)
        if connector is None or connector.test is None:
            message = f"connections of type {found[0].type} have no test"
            raise precondition("CONNECTION_TEST_UNSUPPORTED", message, "connection")
        began = self._clock.now_ms()
        try:
            connection = self._opened(found[0])
            self._connectors.caller(connector).test(ActionContext(tenant=caller.tenant, connection=connection))
        except ActionError as failed:
            return Tested(False, self._clock.now_ms() - began, failed.code, failed.message)
        return Tested(True, self._clock.now_ms() - began)

    def _mapped(self, tenant: str, environment: str, name: str) -> str:
        item = self._table.get(f"N#{tenant}", environment_sk(environment)) if environment else None
        if item is None:
            return ""
        return msgspec.json.decode(item.body, type=Environment).connections.get(name, "")

    def _opened(self, row: ConnectionRow) -> Connection:
        try:
            texts = {name: self._secrets.get(stored) for name, stored in row.secrets.items()}
        except SecretLostError as fault:
            raise ActionError("CONNECTION_UNREADABLE", str(fault), retryable=False) from None
        return Connection(
            id=row.id,
            slug=row.slug,
            type=row.type,
            settings=row.settings,
            secrets={name: Secret(text) for name, text in texts.items() if text is not None},
        )


def _unknown(task: AttemptTask) -> ActionError:
    # A reference may come from the run's data; what looks like no name at all is not repeated.
    named = repr(task.connection_ref) if _NAME.fullmatch(task.connection_ref) else "of the name that the step gives"
    message = (
        f"no active connection {named} serves the environment {task.environment!r}; "
        "create or correct it, then redrive the run"
    )
    return ActionError("CONNECTION_UNKNOWN", message, retryable=False)
