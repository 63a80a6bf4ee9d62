"""`http.request` with a connection: the secret goes along, and only to where the connection points."""

from __future__ import annotations

from ductor.actions.connectors.catalog import Connectors
from ductor.actions.context import ActionContext
from ductor.actions.errors import ActionError
from ductor.actions.http import HttpRequest
from ductor.actions.http_args import HttpArgs
from ductor.model.json import JSON


class SignedHttpRequest:
    """The function behind `http.request`."""

    def __init__(self, http: HttpRequest, connectors: Connectors) -> None:
        self._http = http
        self._connectors = connectors

    def __call__(self, args: HttpArgs, ctx: ActionContext) -> dict[str, JSON]:
        """Status, headers and body of the answer. Raises ActionError."""
        if ctx.connection is None:
            return self._http(args, ctx)
        connector = self._connectors.get(ctx.connection.type)
        if connector is None or connector.auth.type == "none":
            message = f"a connection of type {ctx.connection.type} does not say how to sign a request"
            raise ActionError("CONNECTION_TYPE_MISMATCH", message, retryable=False)
        return self._http(self._connectors.caller(connector).signed(args, ctx), ctx)
