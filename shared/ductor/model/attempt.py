"""One execution of an action step by a worker, as stored in its own row."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from ductor.model.errors import StepError
from ductor.model.payload import NULL, Payload


class AttemptStatus(StrEnum):
    """An attempt ends first in its row, by one conditional write; the coordinator applies only what the row says."""

    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    TIMED_OUT = "timed_out"
    LOST = "lost"
    REVOKED = "revoked"

    @property
    def ended(self) -> bool:
        return self is not AttemptStatus.RUNNING


class AttemptTask(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a worker needs to run one attempt: the body of a message on the steps queue.

    Timeouts are milliseconds, 0 = the action's default (`timeout_ms`) or none (`heartbeat_timeout_ms`). `environment`
    is set when there is a connection to resolve in it.
    """

    run_id: str
    tenant: str
    node: str
    attempt: int
    generation: int
    action: str
    input: Payload
    timeout_ms: int = 0
    heartbeat_timeout_ms: int = 0
    idempotency_key: str = ""
    connection_ref: str = ""
    connection_ref_mode: str = ""
    definition_id: str = ""
    scheduled_at: int = 0
    environment: str = ""


class Attempt(msgspec.Struct, omit_defaults=True):
    """The attempt row (`R#<run_id>`, `A#<node>#<attempt>`): made by the claim, absent before.

    `lease_until` is epoch ms: past it the worker counts as lost. `deliveries` counts claims of this attempt: at most 3,
    besides the `returned` ones, which a worker that was stopped gave back. `cancel_requested` is seen by the worker at its next heartbeat. `late_output` is a success that came
    after the attempt had ended otherwise: its effect happened, so it may have to be undone. Times are epoch ms.
    """

    task: AttemptTask
    status: AttemptStatus = AttemptStatus.RUNNING
    worker: str = ""
    deliveries: int = 1
    returned: int = 0
    lease_until: int = 0
    started_at: int = 0
    finished_at: int = 0
    heartbeat_at: int = 0
    heartbeat_details: object = None
    cancel_requested: bool = False
    output: Payload = NULL
    error: StepError | None = None
    late_output: Payload | None = None


def attempt_sk(node: str, attempt: int) -> str:
    """Sort key of an attempt row."""
    return f"A#{node}#{attempt:06d}"
