"""Who may decide an approval: the audience as a definition names it, and whether a reviewer belongs to it."""

from __future__ import annotations

from collections.abc import Collection
from typing import Annotated

import msgspec

from ductor.steps import reading

Name = Annotated[str, msgspec.Meta(min_length=1, max_length=200)]


class MatchMode(reading.Word):
    """How many of the audience's roles and users a reviewer must match."""

    ANY = "any"
    ALL = "all"


class Audience(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Who may decide; frozen when the gate opens and matched against the calling key's roles and user."""

    match_mode: MatchMode = MatchMode.ANY
    roles: tuple[Name, ...] = ()
    users: tuple[Name, ...] = ()

    def admits(self, roles: Collection[str], user: str) -> bool:
        """Whether a key with these roles, issued to this user (empty: to nobody), may decide."""
        matches = [role in roles for role in self.roles] + [bool(user) and user == name for name in self.users]
        return all(matches) if self.match_mode is MatchMode.ALL else any(matches)

    def describe(self) -> str:
        """The audience in words, for people who wait for it."""
        names = [f"role {role}" for role in self.roles] + [f"user {user}" for user in self.users]
        word = "all" if self.match_mode is MatchMode.ALL else "any"
        return names[0] if len(names) == 1 else f"{word} of {', '.join(names)}"
