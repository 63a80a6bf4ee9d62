"""Whether the settings of a connection fit its type. Settings are shown to administrators: no secret belongs there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit

import msgspec
from pydantic import BaseModel

from ductor.actions import arguments
from ductor.actions.connectors.catalog import CUSTOM, Connectors
from ductor.actions.connectors.schema import model_of
from ductor.actions.connectors.spec import Connector
from ductor.app.refusals import invalid
from ductor.model.errors import ErrorCode, RefusedError, Violation
from ductor.model.json import JSON, encode

MAX_SETTINGS_BYTES: Final = 16_384


def check_settings(connectors: Connectors, connector: Connector, settings: Mapping[str, JSON]) -> None:
    """Refuse with every fault at once."""
    if len(encode(dict(settings))) > MAX_SETTINGS_BYTES:
        raise invalid("FIELD_INVALID", f"at most {MAX_SETTINGS_BYTES} bytes", "settings")
    if connector is CUSTOM:
        return
    model = model_of(f"{connector.connector} settings", connectors.settings_of(connector))
    faults = [Violation(f"settings.{path}", "FIELD_INVALID", message) for path, message in _faults(model, settings)]
    base = settings.get("base_url")
    if isinstance(base, str) and not _usable(base):
        message = "must be an http or https URL with a host, without credentials, query or fragment"
        faults.append(Violation("settings.base_url", "FIELD_INVALID", message))
    if faults:
        raise RefusedError(ErrorCode.INVALID_ARGUMENT, "the settings do not fit the type", tuple(faults))


def _faults(model: type[BaseModel], settings: Mapping[str, JSON]) -> list[arguments.Fault]:
    parsed = arguments.parse(model, dict(settings))
    faults = parsed if isinstance(parsed, list) else []
    return [(path, message.replace("a field of this action", "a setting of this type")) for path, message in faults]


def _usable(url: str) -> bool:
    try:
        parts = urlsplit(url)
        port_fits = parts.port is None or parts.port > 0
    except ValueError:
        return False
    plain = not parts.username and not parts.query and not parts.fragment and "{" not in url
    return parts.scheme in ("http", "https") and bool(parts.hostname) and plain and port_fits


class FieldKind(msgspec.Struct, frozen=True):
    """A setting or secret that a type has."""

    name: str
    required: bool
    description: str


class ConnectionKind(msgspec.Struct, frozen=True):
    """What a connection of this type takes, the actions it is for, and whether it can be tested."""

    type: str
    title: str
    settings: tuple[FieldKind, ...]
    secrets: tuple[FieldKind, ...]
    actions: tuple[str, ...]
    testable: bool


def connection_kinds(connectors: Connectors) -> tuple[ConnectionKind, ...]:
    """Every type of this installation, by name."""
    found = (connectors.get(name) for name in connectors.names())
    return tuple(_kind(connectors, one) for one in found if one is not None)


def _kind(connectors: Connectors, connector: Connector) -> ConnectionKind:
    name = connector.connector
    settings = connectors.settings_of(connector)
    return ConnectionKind(
        type=name,
        title=connector.title or name,
        settings=tuple(FieldKind(key, one.required, one.description) for key, one in settings.items()),
        secrets=tuple(FieldKind(key, one.required, one.description) for key, one in connector.secrets.items()),
        actions=tuple(f"{name}.{operation}" for operation in connector.operations),
        testable=connector.test is not None,
    )
