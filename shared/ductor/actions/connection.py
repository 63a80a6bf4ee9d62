"""What an action gets to reach another system with: settings, and secrets that no text, log or JSON ever shows."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any, Final, NoReturn

import msgspec

from ductor.actions.errors import ActionError
from ductor.model.json import JSON

HIDDEN: Final = "***"
MIN_SECRET: Final = 6
"""Shortest secret in characters: a shorter one would be found by chance in texts that have nothing to do with it."""


class Secret:
    """A secret text. Only `reveal` gives it; str, repr, formatting and every kind of serialisation do not."""

    __slots__ = ("__value",)

    def __init__(self, value: str) -> None:
        self.__value = value

    def reveal(self) -> str:
        """The text itself, for the request it belongs to. Put it into no output, error, log or heartbeat."""
        return self.__value

    def __repr__(self) -> str:
        return f"Secret({HIDDEN})"

    def __str__(self) -> str:
        return HIDDEN

    def __format__(self, spec: str) -> str:
        del spec
        return HIDDEN

    def __reduce__(self) -> NoReturn:
        raise TypeError("a secret cannot be copied out or serialised")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and other.__value == self.__value

    __hash__ = None  # type: ignore[assignment]


class Connection(msgspec.Struct, frozen=True, kw_only=True):
    """How to reach one system of a tenant. `type` is the connector's name, `settings` are not secret.

    Encoding it as JSON fails for its secrets, on purpose.
    """

    id: str
    slug: str
    type: str
    settings: Mapping[str, JSON] = {}
    secrets: Mapping[str, Secret] = {}

    def setting(self, name: str, default: str = "") -> str:
        """A setting as text, `default` when it is not set."""
        value = self.settings.get(name)
        return default if value is None else str(value)

    def secret(self, name: str) -> Secret:
        """Raises ActionError `CONNECTION_INCOMPLETE` (not retryable) when the connection holds no such secret."""
        found = self.secrets.get(name)
        if found is None:
            message = f"the connection {self.slug} holds no secret {name!r}; add it"
            raise ActionError("CONNECTION_INCOMPLETE", message, retryable=False)
        return found

    def redact(self, text: str) -> str:
        """`text` without any of the secrets, also where they stand as base64 of `user:secret` (basic auth)."""
        for form in self._forms():
            if form in text:
                text = text.replace(form, HIDDEN)
        return text

    def _forms(self) -> list[str]:
        """Every text a secret could appear as, longest first, so that no part of one is left over."""
        forms: set[str] = set()
        for secret in self.secrets.values():
            plain = secret.reveal()
            if len(plain) >= MIN_SECRET:
                forms |= {plain, basic_token(self.setting("username"), plain), basic_token(plain, "")}
        return sorted(forms, key=len, reverse=True)


def basic_token(user: str, password: str) -> str:
    """What follows `Basic ` in an Authorization header."""
    return base64.b64encode(f"{user}:{password}".encode()).decode("ascii")


def without_secrets(value: Any, connection: Connection) -> Any:
    """A JSON value with every secret replaced, in texts and in names. The same object when there is none in it."""
    if isinstance(value, str):
        return connection.redact(value)
    if isinstance(value, list):
        return [without_secrets(item, connection) for item in value]
    if isinstance(value, dict):
        return {connection.redact(name): without_secrets(item, connection) for name, item in value.items()}
    return value


def holds_secret(data: bytes, connection: Connection) -> bool:
    """Whether encoded JSON may hold a secret. It may be wrong in saying yes, never in saying no."""
    # JSON escapes only quotes, backslashes and control characters; a secret with those is looked for the slow way.
    plain = [secret.reveal() for secret in connection.secrets.values()]
    if any(not text.isprintable() or not text.isascii() or '"' in text or "\\" in text for text in plain):
        return True
    text = data.decode("utf-8", "replace")
    return connection.redact(text) != text
