"""What an action may know and ask while it runs. The worker plugs in behind it; an action never sees the worker."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Final

import msgspec

from ductor.actions.connection import Connection
from ductor.actions.errors import ActionError, AttemptCancelledError
from ductor.actions.exact import NotExactError, exact
from ductor.model.attempt import ModelUse
from ductor.model.json import JSON

MAX_DETAILS_BYTES: Final = 65_536
"""Largest details of a heartbeat, encoded."""


def _always_ours(details: JSON) -> bool:
    del details
    return True


def _held() -> bool:
    return True


def _not_counted(use: ModelUse) -> None:
    del use


class StopSign:
    """Says that an attempt is to stop. What waiting takes is made when somebody waits: most attempts never do, and an

    event costs more than running one of the core actions (4 us).
    """

    __slots__ = ("_bell", "_is_set")

    def __init__(self) -> None:
        self._is_set = False
        self._bell: threading.Event | None = None

    def is_set(self) -> bool:
        return self._is_set

    def set(self) -> None:
        """For good; whoever waits wakes up."""
        with _bells:
            self._is_set = True
            bell = self._bell
        if bell is not None:
            bell.set()

    def wait(self, seconds: float) -> bool:
        """Until it is set, at most so long; whether it is."""
        with _bells:
            if self._is_set:
                return True
            bell = self._bell = self._bell or threading.Event()
        return bell.wait(seconds)


_bells: Final = threading.Lock()
"""Held for no longer than a look at a sign and its bell."""


class ActionContext(msgspec.Struct, frozen=True, kw_only=True):
    """One delivery of one attempt. Everything has a default, so that a test may call an action directly.

    `idempotency_key` is the same for each delivery and retry of the step: give it to the other side, so that a repeated
    call has one effect. `causation_depth` is that of the run: hand it on to who may start runs (`model.causation`).
    `deadline` is epoch ms, 0 for none. `last_heartbeat` is what an earlier delivery of this attempt reported last, None
    if nothing. `on_heartbeat`, `on_usage` and `stop` belong to the worker. `held` says whether no other worker can have
    the attempt yet: false when the lease could not be renewed and is over. `connection` is that of the step, None when
    it names none; `environment` is the run's, known to steps with connections.
    """

    run_id: str = ""
    tenant: str = ""
    node: str = ""
    attempt: int = 1
    deliveries: int = 1
    idempotency_key: str = ""
    causation_depth: int | None = None
    deadline: int = 0
    last_heartbeat: JSON = None
    connection: Connection | None = None
    environment: str = ""
    on_heartbeat: Callable[[JSON], bool] = _always_ours
    on_usage: Callable[[ModelUse], None] = _not_counted
    held: Callable[[], bool] = _held
    stop: StopSign | threading.Event = msgspec.field(default_factory=StopSign)

    @property
    def cancelled(self) -> bool:
        """Whether the attempt is to stop. Known after a heartbeat or renewal at the latest, not at once."""
        return self.stop.is_set()

    def heartbeat(self, details: JSON = None) -> None:
        """Say that the action is alive, and how far it got (`details`: JSON, at most 64 KB).

        Raises AttemptCancelledError when the attempt was cancelled or lost, ActionError for details JSON cannot hold.
        """
        plain = details if details is None else _checked(details)
        if self.stop.is_set() or not self.on_heartbeat(plain):
            raise AttemptCancelledError("the attempt was cancelled or is no longer held by this worker")

    def wait(self, seconds: float) -> bool:
        """Sleep, but wake at once when the attempt is to stop: True then."""
        return self.stop.wait(max(0.0, seconds))


def _checked(details: JSON) -> JSON:
    try:
        plain, data = exact(details, "details")
    except NotExactError as fault:
        raise ActionError("HEARTBEAT_INVALID", str(fault), retryable=False) from None
    if len(data) > MAX_DETAILS_BYTES:
        message = f"the heartbeat details have {len(data)} bytes; at most {MAX_DETAILS_BYTES} are allowed"
        raise ActionError("HEARTBEAT_INVALID", message, retryable=False)
    return plain
