"""What an installation configures about its actions, by names of the environment. Reads no environment itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from ductor.actions.ai.bedrock import BedrockModels
from ductor.actions.ai.model import DEFAULT, ModelProvider
from ductor.actions.ai.openai import CONNECTION_TYPE, OpenAiModels
from ductor.actions.aws.access import AwsSettings
from ductor.actions.connectors.catalog import Connectors
from ductor.actions.errors import ActionLoadError
from ductor.actions.http import HttpSettings
from ductor.actions.registry import ActionRegistry, default_registry


def installed_actions(environment: Mapping[str, str], parse_duration: Callable[[str], int | None]) -> ActionRegistry:
    """Every action of this installation: built in, from entry points, and configured. Raises ActionLoadError.

    Comma-separated: DUCTOR_ACTIONS are Python modules whose actions are registered, DUCTOR_CONNECTORS folders with
    connector files, DUCTOR_HTTP_ALLOWED_HOSTS hosts that `http.request` may reach wherever they are.
    DUCTOR_HTTP_ALLOW_PRIVATE=1 lets it reach private addresses. A host that is written as an address with a port would
    never be met, and is an ActionLoadError. DUCTOR_AWS_ROLE is the ARN of the role that AWS actions
    call as, instead of the process's own identity; DUCTOR_AWS=off refuses them.
    """

    def names(variable: str) -> tuple[str, ...]:
        return tuple(name.strip() for name in environment.get(variable, "").split(",") if name.strip())

    http = HttpSettings(
        allow_private_networks=environment.get("DUCTOR_HTTP_ALLOW_PRIVATE", "") in ("1", "true", "yes"),
        allowed_hosts=_hosts(names("DUCTOR_HTTP_ALLOWED_HOSTS")),
    )
    return default_registry(
        names("DUCTOR_ACTIONS"),
        http=http,
        parse_duration=parse_duration,
        connector_folders=[Path(name) for name in names("DUCTOR_CONNECTORS")],
        aws=AwsSettings(environment.get("DUCTOR_AWS_ROLE", "").strip(), enabled=not _off(environment, "DUCTOR_AWS")),
    )


def installed_models(environment: Mapping[str, str], connectors: Connectors) -> dict[str, ModelProvider]:
    """Where AI steps find their models, by the type of the step's connection; `""` for steps without one.

    DUCTOR_BEDROCK=off refuses calls of Amazon Bedrock, which are billed to this installation; DUCTOR_BEDROCK_REGION is
    where it is called, when that is not the region of the process.
    """
    enabled = not _off(environment, "DUCTOR_BEDROCK")
    bedrock = BedrockModels(environment.get("DUCTOR_BEDROCK_REGION", "").strip(), enabled=enabled)
    return {DEFAULT: bedrock, CONNECTION_TYPE: OpenAiModels(connectors)}


def _hosts(names: tuple[str, ...]) -> tuple[str, ...]:
    for name in names:
        # One colon ends a name before its port; an IPv6 address has more.
        if "/" in name or name.count(":") == 1:
            raise ActionLoadError(f"DUCTOR_HTTP_ALLOWED_HOSTS: write the host of {name!r} alone, without port or path")
    return names


def _off(environment: Mapping[str, str], variable: str) -> bool:
    return environment.get(variable, "").strip().lower() in ("off", "0", "false", "no")
