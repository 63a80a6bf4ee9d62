"""What an installation on one machine is told by its environment, read and judged once."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ductor.actions.errors import ActionLoadError
from ductor.actions.registry import ActionRegistry
from ductor.actions.settings import installed_actions
from ductor.app.prices import Prices, PricesError, read_prices
from ductor.steps.duration import parse_duration


class StartError(Exception):
    """The local application cannot start; the message says why in one sentence."""


@dataclass(frozen=True, slots=True)
class LocalSettings:
    """How to run locally. `url` is written into the env files; `workers` are waiting actions that run at once."""

    url: str = "http://localhost:8080"
    workers: int | None = None
    environment: Mapping[str, str] = field(default_factory=lambda: os.environ)

    @property
    def workflow_folder(self) -> Path | None:
        """DUCTOR_WORKFLOWS_DIR: a folder with YAML files of global system definitions."""
        named = self.environment.get("DUCTOR_WORKFLOWS_DIR", "").strip()
        return Path(named) if named else None


def price_list(settings: LocalSettings) -> Prices:
    """The prices that costs of runs are estimated with: a built-in list, or DUCTOR_PRICES. Raises StartError."""
    try:
        return read_prices(settings.environment.get("DUCTOR_PRICES", ""))
    except PricesError as error:
        raise StartError(f"DUCTOR_PRICES: {error}") from error


def action_catalog(settings: LocalSettings | None = None) -> ActionRegistry:
    """Every action of this installation: built in, from entry points, and from DUCTOR_ACTIONS. Raises StartError."""
    chosen = settings or LocalSettings()
    try:
        return installed_actions(chosen.environment, parse_duration)
    except ActionLoadError as error:
        raise StartError(str(error)) from error
