"""What the validation tests share: a catalog, a context and small valid documents."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ductor.model.errors import Severity, Violation
from ductor.validation.context import Context, Standing
from ductor.validation.validator import validate

JULY_2026 = 1_783_000_000_000

Doc = dict[str, Any]


class Actions:
    """Two actions: one that needs a connection and an integer `amount`, one that takes anything."""

    known = ("core.echo", "stripe.charge")

    def __contains__(self, name: str) -> bool:
        return name in self.known

    def nearest(self, name: str) -> str | None:
        return "core.echo" if name.startswith("core.") else None

    def validate_args(self, name: str, args: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
        if name == "stripe.charge" and isinstance(args.get("amount"), str) and "${{" not in args["amount"]:
            yield "amount", "must be an integer"

    def needs_connection(self, name: str) -> bool:
        return name == "stripe.charge"

    def connection_type(self, name: str) -> str:
        return "stripe" if name == "stripe.charge" else ""

    def default_args(self, name: str) -> dict[str, Any]:
        return {"currency": "${{ TRIGGER.payload.currency }}"} if name == "stripe.charge" else {}


def _environment(key: str) -> Standing:
    return {"default": Standing.KNOWN, "locked": Standing.NOT_WRITABLE}.get(key, Standing.UNKNOWN)


def _connection(mode: str, ref: str) -> Standing:
    return Standing.KNOWN if (mode, ref) in (("direct", "stripe-live"), ("environment", "stripe")) else Standing.UNKNOWN


def _family(slug: str) -> Standing:
    return Standing.KNOWN if slug == "child" else Standing.UNKNOWN


OFFLINE = Context(catalog=Actions(), now=JULY_2026)
SERVER = Context(catalog=Actions(), now=JULY_2026, environment=_environment, connection=_connection, family=_family)


def echo(ref: str = "a", **fields: Any) -> Doc:
    return {"ref": ref, "type": "action", "action": "core.echo", **fields}


def edge(source: str, target: str, **fields: Any) -> Doc:
    return {"source_ref": source, "target_ref": target, **fields}


def doc(*steps: Doc, edges: Iterable[Doc] = (), **fields: Any) -> Doc:
    return {"family_slug": "sample", "steps": list(steps) or [echo()], "edges": list(edges), **fields}


def found(document: Any, context: Context = SERVER) -> list[Violation]:
    return validate(document, context)


def codes(document: Any, context: Context = SERVER) -> set[str]:
    return {violation.code for violation in found(document, context)}


def errors(document: Any, context: Context = SERVER) -> set[tuple[str, str]]:
    """(field, code) of everything that refuses publication."""
    return {(item.field, item.code) for item in found(document, context) if item.severity is Severity.ERROR}
