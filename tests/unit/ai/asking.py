"""Providers that talk to a speaker over HTTP, and the connection that leads to it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from tests.unit.ai.speaker import Format, Speaker

from ductor.actions.ai.bedrock import BedrockModels
from ductor.actions.ai.model import Message, ModelProvider, ModelRequest
from ductor.actions.ai.openai import OpenAiModels
from ductor.actions.connection import Connection, Secret
from ductor.actions.connectors.catalog import load_connectors
from ductor.actions.context import ActionContext
from ductor.actions.http import HttpRequest, HttpSettings

KEY = "sk-test-0123456789"
OPEN = HttpSettings(allow_private_networks=True)


def connection(url: str, **settings: Any) -> Connection:
    """A connection of type `openai` to a server of ours."""
    return Connection(
        id="c1",
        slug="models",
        type="openai",
        settings={"base_url": f"{url}/v1", **settings},
        secrets={"api_key": Secret(KEY)},
    )


@contextmanager
def aws(url: str, **more: str) -> Iterator[None]:
    """The environment in which the vendor's library finds the speaker, and nothing else of this machine."""
    found = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    own = {
        "AWS_ENDPOINT_URL_BEDROCK_RUNTIME": url,
        "AWS_ACCESS_KEY_ID": "AKIDEXAMPLE",
        "AWS_SECRET_ACCESS_KEY": "secret-of-aws",
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        "AWS_EC2_METADATA_DISABLED": "true",
    }
    with patch.dict(os.environ, {**found, **own, **more}, clear=True):
        yield


def open_ai(settings: HttpSettings = OPEN) -> OpenAiModels:
    return OpenAiModels(load_connectors((), HttpRequest(settings)))


@contextmanager
def reached(kind: Format, speaker: Speaker, **settings: Any) -> Iterator[tuple[ModelProvider, ActionContext]]:
    """A provider of this format, and the context of an attempt that may use it."""
    if kind == "openai":
        yield open_ai(), ActionContext(idempotency_key="r/n", connection=connection(speaker.url, **settings))
        return
    with aws(speaker.url):
        yield BedrockModels("us-east-1"), ActionContext(idempotency_key="r/n")


def asked(text: str = "hello", **rest: Any) -> ModelRequest:
    """A request of one question."""
    return ModelRequest(model="some.model-1", messages=(Message(False, text),), max_tokens=50, **rest)
