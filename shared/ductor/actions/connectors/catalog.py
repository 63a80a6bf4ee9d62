"""The connectors of this installation: the built-in files, and those of the folders that it is told."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Final

from ductor.actions.action import Action
from ductor.actions.aws.access import CONNECTION_TYPE
from ductor.actions.connectors.call import MAX_ITEMS, ConnectorAction, ConnectorCaller
from ductor.actions.connectors.schema import model_of
from ductor.actions.connectors.spec import (
    BASE_URL_SETTING,
    REQUIRED_BASE_URL,
    Connector,
    Field,
    Operation,
    SecretField,
    read_connector,
)
from ductor.actions.errors import ActionLoadError
from ductor.actions.http import HttpRequest

_BUILT_IN: Final = Path(__file__).parent
_MAX_ITEMS_ARG: Final = Field(type="integer", minimum=1, maximum=MAX_ITEMS, description="How many items at most.")

CUSTOM: Final = Connector(
    connector="custom", title="Custom", settings={}, secrets={"token": SecretField("Any secret.", required=False)}
)
"""A connection for actions of one's own: any settings and secrets."""


AWS: Final = Connector(
    connector=CONNECTION_TYPE,
    title="An AWS account",
    settings={
        "region": Field(description="Where to call when the step does not say.", max_length=32),
        "role_arn": Field(
            description="A role to call as; its trust policy must ask for the external id, which is the tenant's id.",
            pattern=r"^arn:[\w-]+:iam::[0-9]{12}:role/[\w+=,.@/-]+$",
            max_length=2_048,
        ),
        "access_key_id": Field(description="Of a user to call as.", pattern=r"^[A-Z0-9]{16,128}$"),
    },
    secrets={"secret_access_key": SecretField("Of the access key.", required=False)},
)
"""Another account, region or identity for AWS actions than the installation's own."""

_WITHOUT_URL: Final = (CUSTOM, AWS)


class Connectors:
    """Connectors by name. Filled while a process starts, only read afterwards."""

    def __init__(self, connectors: Iterable[Connector], http: HttpRequest) -> None:
        self._http = http
        self._by_name: dict[str, Connector] = {one.connector: one for one in _WITHOUT_URL}
        for one in connectors:
            if one.connector in self._by_name:
                raise ActionLoadError(f"two connectors are named {one.connector!r}; rename one of them")
            self._by_name[one.connector] = one

    def get(self, name: str) -> Connector | None:
        return self._by_name.get(name)

    def names(self) -> tuple[str, ...]:
        """All names, sorted: the types that a connection may have."""
        return tuple(sorted(self._by_name))

    def settings_of(self, connector: Connector) -> Mapping[str, Field]:
        """The settings that a connection of this type takes."""
        base = BASE_URL_SETTING if connector.base_url else REQUIRED_BASE_URL
        return connector.settings if connector in _WITHOUT_URL else {"base_url": base, **connector.settings}

    def caller(self, connector: Connector) -> ConnectorCaller:
        """What sends this connector's requests."""
        return ConnectorCaller(connector, self._http)

    def actions(self) -> Iterator[Action]:
        """One action per operation, named `<connector>.<operation>`."""
        for connector in self._by_name.values():
            for name, operation in connector.operations.items():
                yield self._action(connector, name, operation)

    def _action(self, connector: Connector, name: str, operation: Operation) -> Action:
        fields = dict(operation.args)
        if operation.pagination is not None:
            fields.setdefault("max_items", _MAX_ITEMS_ARG)
        full = f"{connector.connector}.{name}"
        pages = 1 if operation.pagination is None else 10
        return Action(
            name=full,
            function=ConnectorAction(connector, operation, self._http),
            args_model=model_of(full, fields),
            # Each exchange has a limit of its own; this one only bounds them together.
            timeout_ms=operation.timeout_ms * len(operation.requests) * pages + 10_000,
            description=operation.description,
            connection_type=connector.connector,
            default_args={key: one.when_omitted for key, one in fields.items() if one.when_omitted},
        )


def load_connectors(folders: Sequence[Path], http: HttpRequest) -> Connectors:
    """The built-in connectors and those of `folders` (`*.yaml`, `*.yml`). Raises ActionLoadError."""
    files = [path for folder in folders for path in _files(folder)]
    return Connectors((*_built_in(), *map(read_connector, files)), http)


def _files(folder: Path) -> list[Path]:
    if not folder.is_dir():
        raise ActionLoadError(f"the connector folder {folder} does not exist")
    return sorted(path for path in folder.iterdir() if path.suffix in (".yaml", ".yml"))


@cache
def _built_in() -> tuple[Connector, ...]:
    return tuple(read_connector(path) for path in sorted(_BUILT_IN.glob("*.yaml")))
