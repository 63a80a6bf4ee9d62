"""What goes wrong in a simulated world: chances drawn from the seed, and crashes that a test plans."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, Final

import msgspec


class Crash(BaseException):
    """The process of an actor dies at this moment; everything that it held in memory is gone."""


class Chances(msgspec.Struct, frozen=True, kw_only=True):
    """How likely each fault is, per opportunity (0 to 1). The `_ms` fields are the largest amounts.

    `crash`: at a named fault point; `crash_call`: before or after a call of a port. `lost_reply`: a write, send or ack
    happens and its reply does not arrive. `unavailable`: a call fails and nothing happened. `partial_send`: an entry
    of a batch is not accepted. `duplicate`, `lost_task`, `delayed`: messages to the step workers, which have no order.
    `lost_ack`: an acknowledgement does nothing. `repeated_timer`: a wake-up that has fired stays armed. `lost_timer`:
    one is never armed. `meanwhile`: another actor runs in the middle of a call to the table. `overslept`: then so
    much time passes first that messages become visible again. `slow`: factor on how long actions take.
    """

    crash: float = 0.0
    crash_call: float = 0.0
    lost_reply: float = 0.0
    unavailable: float = 0.0
    partial_send: float = 0.0
    duplicate: float = 0.0
    lost_task: float = 0.0
    delayed: float = 0.0
    lost_ack: float = 0.0
    repeated_timer: float = 0.0
    lost_timer: float = 0.0
    lost_start: float = 0.0
    meanwhile: float = 0.0
    overslept: float = 0.0
    fault: float = 0.0
    skew_ms: int = 0
    early_ms: int = 0


class Profile(msgspec.Struct, frozen=True, kw_only=True):
    """A kind of world. `worst` holds the highest chance of each fault; a seed draws some of them, often zero.

    `sweeper`: whether one runs; without it every recovery must come from the run's own wake-ups. `starts_per_tick` and
    `header_bytes` lower the engine's bounds, so that small runs meet them (0: as in production).
    """

    name: str
    worst: Chances = Chances()
    sweeper: bool = True
    operators: float = 0.5
    cached_runs: tuple[int, ...] = (0, 0, 1, 50)
    starts_per_tick: int = 0
    header_bytes: int = 0


_STORM: Final = Chances(
    crash=0.06,
    crash_call=0.02,
    lost_reply=0.08,
    unavailable=0.08,
    partial_send=0.2,
    duplicate=0.2,
    lost_task=0.2,
    delayed=0.3,
    lost_ack=0.2,
    repeated_timer=0.3,
    lost_timer=0.2,
    lost_start=0.3,
    meanwhile=0.25,
    overslept=0.4,
    skew_ms=4_000,
    early_ms=3_000,
)

PROFILES: Final[dict[str, Profile]] = {
    profile.name: profile
    for profile in (
        Profile(name="calm", operators=0.0, cached_runs=(0,)),
        Profile(name="storm", worst=_STORM),
        Profile(name="alone", worst=msgspec.structs.replace(_STORM, lost_timer=0.0, lost_start=0.0), sweeper=False),
        Profile(name="tight", worst=_STORM, starts_per_tick=1, header_bytes=2_000),
        Profile(name="stalls", worst=msgspec.structs.replace(_STORM, fault=1.0)),
    )
}
"""`calm`: no faults. `storm`: all. `alone`: no sweeper, and nothing lost that only a sweeper finds. `tight`: tiny
bounds. `stalls`: the engine itself fails now and then."""


def draw(profile: Profile, rng: random.Random) -> Chances:
    """The faults of one world: each kind is off, mild or at its worst."""
    values: dict[str, Any] = {
        name: worst * rng.choice((0.0, 0.0, 0.3, 1.0)) if isinstance(worst, float) else int(worst * rng.random())
        for name, worst in msgspec.structs.asdict(profile.worst).items()
    }
    return Chances(**values)


class Chaos:
    """Decides at each opportunity. Counts, so that a test can plan a crash at the n-th passing of a point."""

    def __init__(self, rng: random.Random, chances: Chances) -> None:
        self.rng = rng
        self.chances = chances
        self.on = True
        self.meanwhile: Callable[[], None] | None = None
        self.spared: Callable[[], bool] = lambda: False
        self.note: Callable[[str, str], None] = lambda what, detail: None
        self._planned: dict[str, int] = {}
        self.passed: dict[str, int] = {}

    def at(self, point: str) -> None:
        """A named fault point (`ports.Faults`)."""
        self.passed[point] = self.passed.get(point, 0) + 1
        left = self._planned.get(point)
        if left is not None:
            if left <= 1:
                del self._planned[point]
                raise Crash(point)
            self._planned[point] = left - 1
        if self.strikes(self.chances.crash):
            self.note("crash", point)
            raise Crash(point)

    def crash_at(self, point: str, passing: int = 1) -> None:
        """Crash when `point` is passed for the `passing`-th time from now, whatever the chances are."""
        self._planned[point] = passing

    def strikes(self, chance: float) -> bool:
        return self.on and chance > 0.0 and self.rng.random() < chance and not self.spared()

    def interrupt(self) -> None:
        """Perhaps let another actor run in the middle of what this one does."""
        if self.meanwhile is not None and self.strikes(self.chances.meanwhile):
            self.meanwhile()
