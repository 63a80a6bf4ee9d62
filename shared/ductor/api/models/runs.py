"""Runs on the wire: triggering, controlling and reading them."""

from __future__ import annotations

from typing import Any, Final

from pydantic import Field

from ductor.api.models.common import AnswerModel, JsonObject, Metadata, RequestModel, When

PAGE_PARAMETERS: Final = ("limit", "cursor")


class LabelBody(RequestModel):
    """A stable business identity."""

    key: str
    id: str


class TriggerBody(RequestModel):
    """How to start a run."""

    input: Any = Field(default_factory=dict, description="The run's payload, any JSON up to 1 MB.")
    subject_type: str = ""
    subject_id: str = ""
    idempotency_key: str | None = Field(None, description="The same key and body always get the same run.")
    correlation_labels: list[LabelBody] = Field([])
    variables: JsonObject = Field({})
    external_deployment_id: str = ""
    wait_for_checkpoint: bool = False
    checkpoint_timeout_seconds: float | None = None


class ControlBody(RequestModel):
    """`request_id` makes repeats harmless; `reason` goes into the audit trail."""

    request_id: str
    reason: str = ""


class TriggerAnswer(AnswerModel):
    """The run that this trigger started, or had started before."""

    run_id: str
    status: str
    metadata: Metadata


class Failure(AnswerModel):
    """Why a run, node or attempt failed."""

    code: str
    message: str
    retryable: bool
    details: Any


class CheckpointAnswer(TriggerAnswer):
    """The answer to `wait_for_checkpoint`. The error says why the output could not be rendered."""

    checkpoint_reached: bool
    response_group_output: Any
    response_group_error: Failure | None


class ControlAnswer(AnswerModel):
    """The intent is durable; the run changes on the coordinator's next tick."""

    status: str = "accepted"
    run_id: str
    metadata: Metadata


class Label(AnswerModel):
    """A correlation label."""

    key: str
    id: str


class WaitingOn(AnswerModel):
    """What a run or node waits for, and since when."""

    kind: str
    detail: str
    since: When
    deadline_at: When


class Stalled(AnswerModel):
    """The coordinator cannot advance the run."""

    reason: str
    since: When


class RunSummary(AnswerModel):
    """A run at a glance."""

    run_id: str
    status: str
    workflow_type: str = Field(description="The definition's family slug.")
    definition_id: str
    definition_version: int
    environment: str
    kind: str
    journey_id: str
    root_run_id: str
    parent_run_id: str
    parent_node: str
    source_run_id: str
    nesting_depth: int
    subject_type: str
    subject_id: str
    correlation_labels: list[Label]
    attributes: JsonObject
    external_deployment_id: str
    schedule: str = Field(description="The family whose schedule started it; empty for other runs.")
    scheduled_at: When = Field(description="The occurrence that it is for.")
    created_by: str
    created_at: When
    started_at: When
    updated_at: When
    finished_at: When
    deadline_at: When
    transition_seq: int
    db_record_version: int
    current_steps: list[str]
    waiting_on: WaitingOn | None
    stalled: Stalled | None
    reason: str
    error: Failure | None


class RunDetail(AnswerModel):
    """The page of one run."""

    summary: RunSummary


class ModelUsage(AnswerModel):
    """What an attempt used of one language model."""

    provider: str
    model: str
    calls: int
    input_tokens: int
    output_tokens: int
    latency_ms: int


class Said(AnswerModel):
    """One entry of what an AI step and its model said: a turn of the model, a tool call, or a conversation's end."""

    kind: str = Field(description="turn, tool or ended.")
    at: When
    took_ms: int
    name: str = Field(description="The model of a turn, the action of a tool call.")
    outcome: str = Field(description="Why the model stopped, `succeeded`, or the code of the error.")
    input_tokens: int
    output_tokens: int
    content: Any = Field(description="Texts and values, redacted by the step's policy.")
    content_large: bool = Field(description="The content is over 8 KB and not shown.")


class Node(AnswerModel):
    """One step of a run."""

    type: str
    status: str
    attempt: int
    title: str
    started_at: When
    finished_at: When
    latest_output_json: str | None = Field(description="The output as JSON text, redacted by the step's policy.")
    output_ref: str | None = Field(description="Where to read an output over 8 KB.")
    error: Failure | None
    waiting_on: WaitingOn | None
    next_retry_at: When
    deadline_at: When
    child_run_id: str | None
    no_route: bool
    usage: list[ModelUsage] = Field([], description="What the latest attempt of an AI step used of each model.")


class RunStep(Node):
    """One step of a run in a list."""

    node: str


class SnapshotAnswer(AnswerModel):
    """Every node of a run."""

    run_id: str
    status: str
    transition_seq: int
    db_record_version: int
    waiting_on: WaitingOn | None
    stalled: Stalled | None
    nodes: dict[str, Node]
    context: Any
    checkpoints: dict[str, When]
    next_cursor: str | None = Field(default=None, description="The next page of a step's items (`scope`).")
    metadata: Metadata


class Attempt(AnswerModel):
    """One execution of an action step by a worker."""

    node: str
    attempt: int
    generation: int
    action: str
    status: str
    deliveries: int
    worker: str
    actor: str = Field("", description="The API key of the worker outside that took or answered it; else empty.")
    scheduled_at: When
    started_at: When
    heartbeat_at: When
    finished_at: When
    heartbeat_details: Any
    cancel_requested: bool
    input: Any
    input_large: bool = Field(description="The input is over 8 KB and not shown.")
    output: Any
    output_large: bool = Field(description="The output is over 8 KB and not shown; read it at the node.")
    error: Failure | None
    usage: list[ModelUsage] = Field([], description="What it used of each language model.")
    conversation: list[Said] = Field([], description="Turns and tool calls of an AI step, oldest first.")


class RunEvent(AnswerModel):
    """One entry of a run's history."""

    seq: int
    at: When
    kind: str = Field(description="transition, attempt or audit.")
    type: str
    node: str | None
    data: JsonObject


class AuditEntry(AnswerModel):
    """What became of an operator's request."""

    seq: int
    at: When
    operation: str
    outcome: str = Field(description="applied, duplicate or rejected.")
    actor: str
    request_id: str
    reason: str
    target: str
    code: str
    message: str


class RunOutput(AnswerModel):
    """The output of a run, not redacted."""

    run_id: str
    output: Any


class RunInput(AnswerModel):
    """What a run was started with, not redacted."""

    run_id: str
    input: Any


class OutputPlace(AnswerModel):
    """Where an output lies that is too large for an answer: the JSON document at `output_url`, not redacted.

    The address needs no key and must not get one; whoever has it can read the output until it expires.
    """

    run_id: str
    output_url: str
    output_bytes: int
    expires_at: When


class OutputPlaceAnswer(OutputPlace):
    """The same, flat."""

    node: str
    metadata: Metadata


class NodeOutputAnswer(AnswerModel):
    """The output of a node, not redacted."""

    run_id: str
    node: str
    output: Any
    metadata: Metadata
