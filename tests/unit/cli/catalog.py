"""An action catalogue for offline checks in tests."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ductor.model.json import JSON
from ductor.validation.context import Context


class Names:
    """Knows action names and accepts any args."""

    def __init__(self, *names: str) -> None:
        self._names = names

    def __contains__(self, name: str, /) -> bool:
        return name in self._names

    def nearest(self, name: str) -> str | None:
        return self._names[0] if self._names else None

    def validate_args(self, name: str, args: Mapping[str, object]) -> Iterable[tuple[str, str]]:
        return ()

    def needs_connection(self, name: str) -> bool:
        return False

    def connection_type(self, name: str) -> str:
        return ""

    def default_args(self, name: str) -> dict[str, JSON]:
        return {}


CONTEXT = Context(catalog=Names("core.echo", "core.fail"), now=1_767_225_600_000)
