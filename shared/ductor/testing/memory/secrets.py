"""Secrets in a dictionary."""

from __future__ import annotations


class MemorySecrets:
    """`ports.Secrets` for tests; `texts` shows what is kept."""

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}

    def put(self, name: str, text: str) -> None:
        self.texts[name] = text

    def get(self, name: str) -> str | None:
        return self.texts.get(name)

    def delete(self, name: str) -> None:
        self.texts.pop(name, None)
