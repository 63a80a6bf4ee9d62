"""What a tick asks of the outside. Commands are small: their content is derived from the committed state."""

from __future__ import annotations

import msgspec

from ductor.model.json import JSON
from ductor.model.payload import NULL, Payload


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


class ScanLookback(msgspec.Struct, frozen=True, omit_defaults=True, tag="lookback"):
    """Look for events that were published before the node began to wait for them."""

    node: str
    generation: int


class CheckWaiter(msgspec.Struct, frozen=True, omit_defaults=True, tag="check_waiter"):
    """Read the waiter rows of a node that waits for events: tell it of those that it was not told of."""

    node: str
    generation: int
    scan: bool = False


class CloseWaiter(msgspec.Struct, frozen=True, omit_defaults=True, tag="close_waiter"):
    """Close the waiter rows of a node, so that no event matches it any more.

    `answer`: the node still waits and wants to be told whether an event was faster. Otherwise it has ended, and what
    was kept for the wait is removed.
    """

    node: str
    generation: int
    answer: bool = False


class TellParent(msgspec.Struct, frozen=True, omit_defaults=True, tag="tell_parent"):
    """Report the end of this run to the run that started it. `check`: look first whether it knows."""

    check: bool = False


class CloseChild(msgspec.Struct, frozen=True, omit_defaults=True, tag="close_child"):
    """Cancel or terminate a child run that nobody waits for any more, as its policy and this run's end ask."""

    node: str
    attempt: int
    generation: int


class StartLinked(msgspec.Struct, frozen=True, omit_defaults=True, tag="start_linked"):
    """Start the compensation or hook run that was planned at the end of this run."""

    kind: str


class StartSuccessor(msgspec.Struct, frozen=True, omit_defaults=True, tag="start_successor"):
    """Start the run that goes on where this one ended with continue-as-new."""


class AskSlot(msgspec.Struct, frozen=True, omit_defaults=True, tag="ask_slot"):
    """Give the run a slot of its definition's concurrency, or a place in the line; tell it if it has one already.

    `check`: look first whether those who have a slot still need it.
    """

    lease: int
    check: bool = False


class LeaveSlot(msgspec.Struct, frozen=True, omit_defaults=True, tag="leave_slot"):
    """Take back the run's slot, or its place in the line, and let those behind it move up."""

    lease: int


class Announced(msgspec.Struct, frozen=True, array_like=True):
    """An event about a run: its name, and the number of the transition that it tells of."""

    name: str
    seq: int


class Announce(msgspec.Struct, frozen=True, omit_defaults=True, tag="announce"):
    """Tell the world outside what happened to the run, in order."""

    told: tuple[Announced, ...]


class ForwardIntent(msgspec.Struct, frozen=True, omit_defaults=True, tag="forward"):
    """Hand what came too late for this run to its successor, under the same id."""

    kind: str
    intent_id: str
    actor: str = ""
    request_id: str = ""
    request_hash: str = ""
    reason: str = ""
    body: JSON = None
    output: Payload = NULL


class AskDigest(msgspec.Struct, frozen=True, omit_defaults=True, tag="ask_digest"):
    """Join the digest that the node waits in, or look what has become of it."""

    node: str
    generation: int


class CloseDigest(msgspec.Struct, frozen=True, omit_defaults=True, tag="close_digest"):
    """Close the digest that the node leads, and give it what was brought."""

    node: str
    generation: int


class YieldDigest(msgspec.Struct, frozen=True, omit_defaults=True, tag="yield_digest"):
    """Hand on the lead of a digest: this run is paused."""

    node: str
    generation: int


class LeaveDigest(msgspec.Struct, frozen=True, omit_defaults=True, tag="leave_digest"):
    """The node has ended. `delivered`: with the digest it led, so that the other runs are merged into this one."""

    node: str
    generation: int
    delivered: bool = False


Command = (
    StartAttempt
    | RevokeAttempt
    | CheckAttempt
    | ArmWake
    | Nudge
    | ScanLookback
    | CheckWaiter
    | CloseWaiter
    | TellParent
    | CloseChild
    | StartLinked
    | StartSuccessor
    | ForwardIntent
    | Announce
    | AskSlot
    | LeaveSlot
    | AskDigest
    | CloseDigest
    | YieldDigest
    | LeaveDigest
)


class RegisterWaiter(msgspec.Struct, frozen=True, omit_defaults=True, tag="waiter"):
    """Make a waiting node findable by what it waits for: row `sk` of partition `pk`, written before the commit.

    An empty `pk` is the run's own partition. A row that is there already is left as it is.
    """

    pk: str
    sk: str
    body: JSON = None


Registration = RegisterWaiter
"""What must be stored before a commit, because others look it up as soon as the state is visible."""
