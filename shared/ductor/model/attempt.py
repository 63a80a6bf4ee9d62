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
    is set when there is a connection to resolve in it. `depth` is the run's causation depth.
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
    depth: int = 0


class ModelUse(msgspec.Struct, frozen=True, omit_defaults=True):
    """What an attempt used of one language model: calls, tokens as the provider counts them, ms together."""

    provider: str
    model: str
    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    latency_ms: int = 0


def added(uses: tuple[ModelUse, ...], use: ModelUse) -> tuple[ModelUse, ...]:
    """`uses` with one more, one entry for each model."""
    same = [one for one in uses if (one.provider, one.model) == (use.provider, use.model)]
    others = tuple(one for one in uses if one not in same)
    if not same:
        return (*others, use)
    known = same[0]
    return (
        *others,
        ModelUse(
            use.provider,
            use.model,
            known.calls + use.calls,
            known.input_tokens + use.input_tokens,
            known.output_tokens + use.output_tokens,
            known.latency_ms + use.latency_ms,
        ),
    )


class Attempt(msgspec.Struct, omit_defaults=True):
    """The attempt row (`R#<run_id>`, `A#<node>#<attempt>`): made by the claim, absent before.

    `lease_until` is epoch ms: past it the worker counts as lost. `deliveries` counts claims of this attempt: at most 3,
    besides the `returned` ones, which a worker that was stopped gave back. `cancel_requested` is seen by the worker at
    its next heartbeat. `late_output` is a success that came after the attempt had ended otherwise: its effect happened,
    so it may have to be undone. `usage` is what its workers paid language models for, by model. Times are epoch ms.
    """

    task: AttemptTask
    status: AttemptStatus = AttemptStatus.RUNNING
    worker: str = ""
    deliveries: int = 1
    returned: int = 0
    # Of a worker outside: its API key, how long it may be silent, where its queue holds the task meanwhile, what its
    # tokens are signed with, and that it gave the attempt back.
    actor: str = ""
    lease_ms: int = 0
    place: int = 0
    secret: str = ""
    idle: bool = False
    lease_until: int = 0
    started_at: int = 0
    finished_at: int = 0
    heartbeat_at: int = 0
    heartbeat_details: object = None
    cancel_requested: bool = False
    output: Payload = NULL
    error: StepError | None = None
    late_output: Payload | None = None
    usage: tuple[ModelUse, ...] = ()


def attempt_sk(node: str, attempt: int) -> str:
    """Sort key of an attempt row."""
    return f"A#{node}#{attempt:06d}"
