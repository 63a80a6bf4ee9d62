"""What a tick asks of the outside. Commands are small: their content is derived from the committed state."""

from __future__ import annotations

import msgspec

from ductor.model.json import JSON


class StartAttempt(msgspec.Struct, frozen=True, omit_defaults=True, tag="start"):
    """Hand an attempt to the step workers."""

    node: str
    attempt: int
    generation: int


class RevokeAttempt(msgspec.Struct, frozen=True, omit_defaults=True, tag="revoke"):
    """Close an attempt nobody has claimed; ask the worker of a claimed one to stop."""

    node: str
    attempt: int
    generation: int


class CheckAttempt(msgspec.Struct, frozen=True, omit_defaults=True, tag="check"):
    """Read the attempt's row: apply its end, send the task again if it was lost, or leave it be."""

    node: str
    attempt: int
    generation: int


class ArmWake(msgspec.Struct, frozen=True, omit_defaults=True, tag="wake"):
    """Wake the run at `at` (epoch ms)."""

    at: int


class Nudge(msgspec.Struct, frozen=True, omit_defaults=True, tag="nudge"):
    """Work is left over from a bounded tick: send the run an intent to go on with it."""


Command = StartAttempt | RevokeAttempt | CheckAttempt | ArmWake | Nudge


class RegisterWaiter(msgspec.Struct, frozen=True, omit_defaults=True, tag="waiter"):
    """Make a waiting node findable by what it waits for: row `sk` of partition `pk`, written before the commit."""

    node: str
    generation: int
    pk: str
    sk: str
    body: JSON = None


Registration = RegisterWaiter
"""What must be stored before a commit, because others look it up as soon as the state is visible."""
