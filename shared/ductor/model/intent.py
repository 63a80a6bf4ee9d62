"""Everything that asks to change a run. Intents arrive through the FIFO queue of their run; a tick applies them."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from ductor.model.attempt import AttemptStatus
from ductor.model.errors import StepError
from ductor.model.json import JSON
from ductor.model.payload import NULL, Payload


class IntentKind(StrEnum):
    """The kinds of intent known to this release."""

    START = "start"
    ATTEMPT_FINISHED = "attempt_finished"
    TIMER_FIRED = "timer_fired"
    COMMAND_FAILED = "command_failed"
    PAUSE = "pause"
    RESUME = "resume"
    CANCEL = "cancel"
    TERMINATE = "terminate"
    REDRIVE = "redrive"
    NUDGE = "nudge"


OPERATOR_KINDS = frozenset(
    {IntentKind.PAUSE, IntentKind.RESUME, IntentKind.CANCEL, IntentKind.TERMINATE, IntentKind.REDRIVE}
)
"""Intents of people and programs: audited, and idempotent by `request_id`."""


class Intent(msgspec.Struct, frozen=True, omit_defaults=True):
    """One intent. `id` is unique for ever; `at` is when it was asked for (epoch ms), `actor` the API key's id.

    `request_hash` covers operation, target and body except `reason`. Node fields are set for intents about a node.
    """

    id: str
    run_id: str
    kind: IntentKind
    at: int = 0
    actor: str = ""
    request_id: str = ""
    request_hash: str = ""
    reason: str = ""
    node: str = ""
    attempt: int = 0
    generation: int = 0
    status: AttemptStatus | None = None
    output: Payload = NULL
    error: StepError | None = None
    body: JSON = None
