"""Runs an action with its connection, so that no secret of it gets into what is stored: output, error, heartbeat."""

from __future__ import annotations

from typing import Protocol

import msgspec

from ductor.actions.action import Action
from ductor.actions.connection import Connection, holds_secret, without_secrets
from ductor.actions.context import ActionContext
from ductor.actions.errors import ActionError
from ductor.actions.execute import execute, failure
from ductor.model.attempt import AttemptTask
from ductor.model.json import JSON, encode


class Resolver(Protocol):
    """Finds the connection of an attempt (`app.connecting`)."""

    def resolve(self, task: AttemptTask) -> Connection | None:
        """None when the step names none. Raises ActionError, UnavailableError."""
        ...


class NoConnections:
    """For installations that store none: a step that names one fails."""

    def resolve(self, task: AttemptTask) -> Connection | None:
        """Raises ActionError `CONNECTION_UNKNOWN` for any reference."""
        if task.connection_ref:
            message = "this worker has no connections; run the step where they are stored"
            raise ActionError("CONNECTION_UNKNOWN", message, retryable=False)
        return None


def execute_connected(action: Action, args: JSON, ctx: ActionContext) -> tuple[JSON, bytes]:
    """The output of `action` and its encoding, as `execute` gives them, without the secrets of `ctx.connection`.

    A system that repeats the credentials it was called with must not thereby put them into the run: each occurrence
    becomes `***`, in errors too. Texts that only derive from a secret (a hash, a signature) are not recognised.
    """
    connection = ctx.connection
    if connection is None:
        return execute(action, args, ctx)
    try:
        output, data = execute(action, args, _beating_without_secrets(ctx, connection))
    except Exception as fault:  # noqa: BLE001 - whatever it raised becomes an error without secrets
        error = failure(fault)
        raise ActionError(
            connection.redact(error.code),
            connection.redact(error.message),
            error.retryable,
            without_secrets(error.details, connection),
        ) from None
    if not holds_secret(data, connection):
        return output, data
    clean = without_secrets(output, connection)
    return clean, encode(clean)


def _beating_without_secrets(ctx: ActionContext, connection: Connection) -> ActionContext:
    beat = ctx.on_heartbeat
    return msgspec.structs.replace(ctx, on_heartbeat=lambda details: beat(without_secrets(details, connection)))
