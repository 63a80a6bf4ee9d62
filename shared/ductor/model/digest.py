"""Digests as data: what a run brings to one, the rows that the runs of one digest share, and how they are keyed."""

from __future__ import annotations

import hashlib
from enum import StrEnum

import msgspec

from ductor.model.json import JSON, encode
from ductor.model.payload import NULL, Payload


class Phase(StrEnum):
    """What a run that waits in a digest knows of its part in it."""

    JOINING = "joining"
    MEMBER = "member"
    LEADING = "leading"
    CLOSING = "closing"
    MERGED = "merged"


class DigestWait(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """The input of a waiting digest node. Times are ms; `arrival` of `size` bytes is a payload of the run.

    `wait_ms` and `most` count only if this run opens the window. `term` numbers the leaders of the window, so that old
    news are recognised; `into` is the run that took the arrival.
    """

    key: str
    wait_ms: int
    most: int
    dedup: str = ""
    arrival: Payload = NULL
    size: int = 0
    phase: Phase = Phase.JOINING
    term: int = 0
    closes_at: int = 0
    into: str = ""


class Role(msgspec.Struct, frozen=True):
    """Body of a `digest_arrival` intent: whether the run leads, since which term, and until when (epoch ms)."""

    lead: bool
    term: int
    closes_at: int
    full: bool


class Who(msgspec.Struct, frozen=True):
    """One wait of one run: its arrival is in one batch at most."""

    run_id: str
    node: str
    generation: int


class WindowStatus(StrEnum):
    """`open` takes arrivals, `full` no more, `closed` is about to be handed to its leader, `done` has been."""

    OPEN = "open"
    FULL = "full"
    CLOSED = "closed"
    DONE = "done"


class Window(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """Body of a window's row, which every change of membership or leadership rewrites conditionally.

    `joined` places were given out in all, `count` arrivals of `size` bytes are in. `mark` says who opened it: numbers
    of windows may return. Without a `leader` the next run that looks takes the lead.
    """

    mark: str
    closes_at: int
    most: int
    leader: Who | None = None
    term: int = 1
    status: WindowStatus = WindowStatus.OPEN
    joined: int = 0
    count: int = 0
    size: int = 0

    @property
    def undecided(self) -> bool:
        """Whether no leader can have read the members yet."""
        return self.status in (WindowStatus.OPEN, WindowStatus.FULL)


class Member(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """Body of a member row, which holds what was brought: a leader reads thousands of them. `at` is epoch ms."""

    who: Who
    at: int
    size: int
    arrival: JSON = None
    dedup: str = ""


class Joined(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """Body of the row in the run's own partition that says where its arrival is. `over`: it waits no longer."""

    pk: str = ""
    number: int = 0
    place: int = 0
    mark: str = ""
    over: bool = False


def digest_pk(tenant: str, environment: str, family_slug: str, ref: str, key: str) -> str:
    """Partition of a digest: runs of one family, step, environment and key meet there, whatever their version."""
    parts: list[JSON] = [environment, family_slug, ref, key]
    return f"DG#{tenant}#{hashlib.sha256(encode(parts)).hexdigest()[:32]}"


WINDOW_PREFIX = "W#"


def window_sk(number: int) -> str:
    return f"{WINDOW_PREFIX}{number:010d}"


def member_sk(number: int, place: int | None = None) -> str:
    """Sort key of a member; without a place the prefix of all members of a window, which are in order of joining."""
    return f"M#{number:010d}#" + ("" if place is None else f"{place:08d}")


def joined_sk(node: str, generation: int) -> str:
    return f"DIGEST#{node}#{generation:06d}"
