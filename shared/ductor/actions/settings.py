"""What an installation configures about its actions, by names of the environment. Reads no environment itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from ductor.actions.http import HttpSettings
from ductor.actions.registry import ActionRegistry, default_registry


def installed_actions(environment: Mapping[str, str], parse_duration: Callable[[str], int | None]) -> ActionRegistry:
    """Every action of this installation: built in, from entry points, and configured. Raises ActionLoadError.

    Comma-separated: DUCTOR_ACTIONS are Python modules whose actions are registered, DUCTOR_CONNECTORS folders with
    connector files, DUCTOR_HTTP_ALLOWED_HOSTS hosts that `http.request` may reach wherever they are.
    DUCTOR_HTTP_ALLOW_PRIVATE=1 lets it reach private addresses.
    """

    def names(variable: str) -> tuple[str, ...]:
        return tuple(name.strip() for name in environment.get(variable, "").split(",") if name.strip())

    http = HttpSettings(
        allow_private_networks=environment.get("DUCTOR_HTTP_ALLOW_PRIVATE", "") in ("1", "true", "yes"),
        allowed_hosts=names("DUCTOR_HTTP_ALLOWED_HOSTS"),
    )
    return default_registry(
        names("DUCTOR_ACTIONS"),
        http=http,
        parse_duration=parse_duration,
        connector_folders=[Path(name) for name in names("DUCTOR_CONNECTORS")],
    )
