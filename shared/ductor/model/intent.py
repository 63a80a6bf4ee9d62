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
    ATTEMPT_STARTED = "attempt_started"
    TIMER_FIRED = "timer_fired"
    COMMAND_FAILED = "command_failed"
    PAUSE = "pause"
    RESUME = "resume"
    CANCEL = "cancel"
    TERMINATE = "terminate"
    REDRIVE = "redrive"
    NUDGE = "nudge"
    APPROVE = "approve"
    REJECT = "reject"
    RESOLVE = "resolve"
    SIGNAL = "signal"
    EVENT_MATCHED = "event_matched"
    WAIT_CLOSED = "wait_closed"
    CHILD_FINISHED = "child_finished"
    PARENT_CLOSED = "parent_closed"
    DIGEST_ARRIVAL = "digest_arrival"
    DIGEST_CLOSED = "digest_closed"
    ADMIT = "admit"
    CONTINUE_AS_NEW = "continue_as_new"
    DUTY_DONE = "duty_done"
    NODE_PAUSE = "node_pause"
    NODE_RESUME = "node_resume"
    NODE_RESET = "node_reset"
    NODE_RETRY_POLICY = "node_retry_policy"
    NODE_TIMEOUT = "node_timeout"
    BATCH = "batch"
    """No run but a batch goes on: `run_id` is the batch's id, `body` the version of its row that is to be advanced."""


OPERATOR_KINDS = frozenset(
    {
        IntentKind.PAUSE,
        IntentKind.RESUME,
        IntentKind.CANCEL,
        IntentKind.TERMINATE,
        IntentKind.REDRIVE,
        IntentKind.APPROVE,
        IntentKind.REJECT,
        IntentKind.RESOLVE,
        IntentKind.SIGNAL,
        IntentKind.CONTINUE_AS_NEW,
        IntentKind.NODE_PAUSE,
        IntentKind.NODE_RESUME,
        IntentKind.NODE_RESET,
        IntentKind.NODE_RETRY_POLICY,
        IntentKind.NODE_TIMEOUT,
    }
)
"""Intents of people and programs: audited, and idempotent by `request_id`."""


DECISION_KINDS = frozenset({IntentKind.APPROVE, IntentKind.REJECT, IntentKind.RESOLVE})
"""Operators' intents that end one waiting node."""

NODE_KINDS = frozenset(
    {
        IntentKind.EVENT_MATCHED,
        IntentKind.WAIT_CLOSED,
        IntentKind.DIGEST_ARRIVAL,
        IntentKind.DIGEST_CLOSED,
    }
)
"""What other parties tell one waiting node; matched by node and generation, so a late or repeated one is a no-op."""


class Intent(msgspec.Struct, frozen=True, omit_defaults=True):
    """One intent. `id` is unique for ever; `at` is when it was asked for (epoch ms), `actor` the API key's id.

    `request_hash` covers operation, target and body except `reason`. Node fields are set for intents about a node.
    `late` is the output of a success that came after the attempt had ended otherwise, `ran_ms` how long one took.
    `findable`: whoever asks for the start has written the rows that find the run.
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
    late: Payload | None = None
    ran_ms: int = 0
    findable: bool = False
