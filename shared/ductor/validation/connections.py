"""Whether what a definition calls has the connection that it needs: steps, compensation targets and hooks alike."""

from __future__ import annotations

from typing import Final

from ductor.model.errors import Severity
from ductor.model.json import JSON
from ductor.steps.reading import clipped
from ductor.validation.context import Context, Standing
from ductor.validation.found import Found
from ductor.validation.view import View

DIRECT: Final = "direct"


class Call:
    """One call of an action: where it stands, and which connection it names how."""

    __slots__ = ("action", "at", "mode", "ref")

    def __init__(self, at: str, action: JSON, ref: JSON, mode: str = DIRECT) -> None:
        self.at = f"{at}.connection_ref"
        self.action = action
        self.ref = ref
        self.mode = mode or DIRECT


def check_connection(call: Call, view: View, context: Context, found: Found) -> None:
    """Report a connection that is missing, unknown, or of another type than the action needs.

    A reference with an expression is known only at run time; a literal one must lead to a connection.
    """
    known = isinstance(call.action, str) and call.action in view.catalog
    needed = view.catalog.connection_type(str(call.action)) if known else ""
    if not call.ref:
        if known and view.catalog.needs_connection(str(call.action)):
            message = f"'{call.action}' needs a connection; name one, or create one with the slug '{needed}'"
            found.fault(call.at, "CONNECTION_REQUIRED", message)
    elif isinstance(call.ref, str) and "${{" not in call.ref:
        _check_literal(call, call.ref, needed, context, found)


def _check_literal(call: Call, ref: str, needed: str, context: Context, found: Found) -> None:
    standing = context.connection(call.mode, ref)
    if standing is Standing.UNKNOWN:
        message = f"no connection is known as '{clipped(ref)}' ({call.mode}); create it or correct the reference"
        found.fault(call.at, "CONNECTION_UNKNOWN", message)
    elif standing is Standing.UNRESOLVED:
        message = f"whether '{clipped(ref)}' exists is known to the server only"
        found.fault(call.at, "CONNECTION_UNKNOWN", message, Severity.UNRESOLVED)
    elif needed and (has := context.connection_type(call.mode, ref)) not in ("", needed):
        message = f"'{clipped(ref)}' is a connection of type {has}; '{call.action}' needs {needed}"
        found.fault(call.at, "CONNECTION_UNKNOWN", message)
