"""What an installation configures about its actions, by names of the environment. Reads no environment itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from ductor.actions.ai.bedrock import BedrockModels
from ductor.actions.ai.model import DEFAULT, ModelProvider
from ductor.actions.ai.openai import CONNECTION_TYPE, OpenAiModels
from ductor.actions.connectors.catalog import Connectors
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


def installed_models(environment: Mapping[str, str], connectors: Connectors) -> dict[str, ModelProvider]:
    """Where AI steps find their models, by the type of the step's connection; `""` for steps without one.

    DUCTOR_BEDROCK=off refuses calls of Amazon Bedrock, which are billed to this installation; DUCTOR_BEDROCK_REGION is
    where it is called, when that is not the region of the process.
    """
    off = environment.get("DUCTOR_BEDROCK", "").strip().lower() in ("off", "0", "false", "no")
    bedrock = BedrockModels(environment.get("DUCTOR_BEDROCK_REGION", "").strip(), enabled=not off)
    return {DEFAULT: bedrock, CONNECTION_TYPE: OpenAiModels(connectors)}
