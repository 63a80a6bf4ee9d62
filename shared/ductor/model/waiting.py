"""Events and the pauses that wait for them, as data: what a pause waits for, its rows, and how the rows are keyed."""

from __future__ import annotations

import hashlib
from typing import Final

import msgspec

from ductor.model.json import JSON, encode
from ductor.model.payload import NULL, Payload

MAX_KEY_CHARS: Final = 1_024
"""Longest correlation key, published or waited for."""


class Event(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """A published event. `received_at` is epoch ms; the payload is any JSON.

    `depth` is its causation depth: see `model.causation`.
    """

    event_name: str
    event_id: str
    correlation_key: str = ""
    payload: JSON = None
    received_at: int = 0
    depth: int = 0


class Awaited(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """One thing that a pause waits for: `count` events of a name and key for which the condition holds.

    `bound` is a value of the run: every root that the condition reads but EVENT. `name` is a requirement's name.
    """

    event_name: str
    correlation_key: str
    name: str = ""
    condition: str = ""
    bound: Payload = NULL
    count: int = 1


class Closing(msgspec.Struct, frozen=True, omit_defaults=True):
    """Why a pause is about to end without its event: `timeout`, `resolve` or `signal`, and what came with it."""

    cause: str
    body: JSON = None
    output: Payload = NULL
    at: int = 0


class EventWait(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """A pause: the input of a waiting node.

    `exclusive`: one event ends it; otherwise events are collected, by place in `on`. `token` stands for what is waited
    for: a registration that was never committed may have left rows of the same node and generation. `seen` are the
    marks of events that the run has consumed before. `since` is when the wait began, epoch ms; an event received up
    to `lookback_ms` before also counts.
    """

    token: str
    on: tuple[Awaited, ...]
    since: int
    exclusive: bool = False
    lookback_ms: int = 0
    seen: tuple[str, ...] = ()
    collected: tuple[tuple[JSON, ...], ...] = ()
    closing: Closing | None = None

    @property
    def registration(self) -> str:
        """What tells the rows of one registration from those of another of the same node and generation."""
        return self.token + _hash(self.seen)[:6]

    @property
    def first(self) -> bool:
        """Whether nothing has happened to the pause since it began."""
        return not self.collected and self.closing is None


class Claim(msgspec.Struct, frozen=True, omit_defaults=True):
    """Which event holds a waiter row, or a place in a set. `payload` is a value of the waiting run."""

    digest: str
    event_id: str
    received_at: int
    payload: Payload = NULL


class Waiter(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """Body of a waiter row: one `Awaited` of a pause, by its `place`. `pause`: the `EventWait`, a payload of its run.

    Open until it is `closed`, or `claim` says which event holds it. `conditional`: the pause must be read to know
    whether an event matches.
    """

    run_id: str
    node: str
    generation: int
    token: str
    place: int
    since: int
    pause: Payload
    exclusive: bool = False
    conditional: bool = False
    seen: tuple[str, ...] = ()
    claim: Claim | None = None
    closed: bool = False


class Registered(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """Body of the row in the run's own partition that says which waiter rows a pause has."""

    token: str
    pause: Payload
    rows: tuple[tuple[str, str], ...]
    exclusive: bool = False


def _hash(*parts: JSON) -> str:
    return hashlib.sha256(encode(parts)).hexdigest()[:32]


def event_digest(event_name: str, correlation_key: str, event_id: str) -> str:
    """What makes two publications the same event, within a tenant."""
    return _hash(event_name, correlation_key, event_id)


def event_mark(event_name: str, correlation_key: str, event_id: str) -> str:
    """A short digest of an event, as a run remembers it; it begins with `marks_of` its name and key."""
    return marks_of(event_name, correlation_key) + _hash(event_id)[:12]


def marks_of(event_name: str, correlation_key: str) -> str:
    """What the marks of all events of one name and key begin with."""
    return _hash(event_name, correlation_key)[:8]


def token_of(on: tuple[Awaited, ...]) -> str:
    """What tells two registrations of one node and generation apart, if they wait for different things.

    A tick that is done again after a crash registers the same pause once more: an event that came in between holds it.
    """
    return _hash(msgspec.to_builtins(on))[:12]


def waiter_pk(tenant: str, event_name: str, correlation_key: str) -> str:
    """Partition of the waiters for one event and key. Hashed, because both may hold anything."""
    return f"W#{tenant}#{_hash(event_name, correlation_key)}"


def waiter_sk(run_id: str, node: str, generation: int, token: str, place: int) -> str:
    return f"{run_id}#{node}#{generation:06d}#{token}#{place:03d}"


def lookback_pk(tenant: str, event_name: str, correlation_key: str) -> str:
    """Partition of the events of one name and key that pauses may look back at."""
    return f"E#{tenant}#{_hash(event_name, correlation_key)}"


def dedupe_pk(tenant: str, digest: str) -> str:
    """Partition of the row that makes a repeated event a repetition."""
    return f"ED#{tenant}#{digest}"


def registered_sk(node: str, generation: int, token: str = "") -> str:
    """Sort key, in the run's partition, of a pause's registration; without a token the prefix of all of them."""
    return f"WAIT#{node}#{generation:06d}#{token}"


def collected_sk(node: str, generation: int, place: int, digest: str = "") -> str:
    """Sort key, in the run's partition, of one event of a set; without a digest the prefix of one requirement's."""
    return f"WEV#{node}#{generation:06d}#{place:03d}#{digest}"
