"""Tasks for workers outside, on the wire."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from ductor.api.models.common import AnswerModel, Metadata, RequestModel, When
from ductor.app.bridge_poll import DEFAULT_LEASE_S, MAX_LEASE_S, MAX_TASKS, MAX_TYPES, MAX_WAIT_S


class PollBody(RequestModel):
    """Which tasks a worker takes, and how long it is ready to wait for one."""

    task_types: list[str] = Field(description=f"1 to {MAX_TYPES} task types, as bridge steps name them.")
    max: int = Field(1, description=f"How many tasks at most, up to {MAX_TASKS}. Take only what you begin at once.")
    wait_seconds: float = Field(
        0, description=f"Up to {MAX_WAIT_S}: the answer comes as soon as there is a task, else empty after so long."
    )
    lease_seconds: int = Field(
        DEFAULT_LEASE_S,
        description="How long you may be silent, where the step has no heartbeat_timeout_ms. After that another worker "
        f"gets the task. 1 to {MAX_LEASE_S}.",
    )
    worker: str = Field("", description="A name to show with the attempt, such as host and process.")
    environment: str | None = Field(None, description="Whose tasks; default: the key's own environment.")


class BridgeTask(AnswerModel):
    """A task that is yours until `lease_expires_at`; each heartbeat moves that."""

    task_token: str = Field(description="Proves your claim; it goes into the path of every answer.")
    task_type: str
    run_id: str
    node: str
    attempt: int
    delivery: int = Field(description="1, or more when a worker before you was lost or gave the task back.")
    input: Any
    idempotency_key: str = Field(description="The same for every attempt of the step: use it where you change things.")
    scheduled_at: When
    lease_expires_at: When
    heartbeat_within_ms: int = Field(description="How long you may be silent.")
    deadline_at: When = Field(description="When the attempt times out, whatever you do; null = never.")
    last_heartbeat: Any = Field(description="What a worker before you told with its last heartbeat.")
    causation_depth: int = Field(
        description="Send it as the header `ductor-causation-depth` when you start runs or publish events for the task."
    )


class PollAnswer(AnswerModel):
    """The oldest tasks first; none when none came in time."""

    tasks: list[BridgeTask]
    metadata: Metadata


class HeartbeatBody(RequestModel):
    """A sign of life."""

    details: Any = Field(
        None, description="How far you are, up to 8 KB; a worker after you gets it. null keeps the last."
    )


class HeartbeatAnswer(AnswerModel):
    """The task is yours for another `heartbeat_within_ms`."""

    cancel_requested: bool = Field(description="Stop now: release the task, or fail it.")
    lease_expires_at: When
    metadata: Metadata


class CompleteBody(RequestModel):
    """The result of a task."""

    output: Any = Field(None, description="Any JSON up to 5 MB: the step's output.")


class FailBody(RequestModel):
    """Why a task could not be done."""

    code: str = Field("TASK_FAILED", description="Stable, for edges and retry policies; up to 64 characters.")
    message: str = ""
    retryable: bool = Field(True, description="False: do not try again, whatever the retry policy says.")
    details: Any = Field(None, description="Any JSON up to 8 KB.")


class TaskAnswer(AnswerModel):
    """The answer counts, and counted only once if it was repeated."""

    status: str = "accepted"
    metadata: Metadata
