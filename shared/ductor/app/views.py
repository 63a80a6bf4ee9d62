"""The shapes in which runs are shown: what a person may see, already redacted. Times are epoch ms, None = not yet."""

from __future__ import annotations

import msgspec

from ductor.app.admission import Label
from ductor.model.json import JSON


class WaitingOn(msgspec.Struct, frozen=True, kw_only=True):
    """What a parked node, or the run as a whole, waits for.

    `kind`: approval, event, event_set, timer, child, retry, concurrency, bridge, digest, operator. `deadline_at` None =
    without limit.
    """

    kind: str
    detail: str
    since: int
    deadline_at: int | None


class StallView(msgspec.Struct, frozen=True):
    """Why the run cannot be advanced, and since when."""

    reason: str
    since: int


class ErrorView(msgspec.Struct, frozen=True):
    """Why an attempt or a node failed. `details` are redacted like the step's values."""

    code: str
    message: str
    retryable: bool
    details: JSON


class RunSummary(msgspec.Struct, frozen=True, kw_only=True):
    """A run in lists and at the head of its page. `workflow_type` is the family slug.

    `schedule` is the family whose schedule started it, empty for other runs; `scheduled_at` the instant it is for.
    """

    run_id: str
    status: str
    workflow_type: str
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
    correlation_labels: tuple[Label, ...]
    attributes: dict[str, JSON]
    external_deployment_id: str
    schedule: str
    scheduled_at: int | None
    created_by: str
    created_at: int
    started_at: int | None
    updated_at: int
    finished_at: int | None
    deadline_at: int | None
    transition_seq: int
    db_record_version: int
    current_steps: tuple[str, ...]
    waiting_on: WaitingOn | None
    stalled: StallView | None
    reason: str
    error: ErrorView | None


class RunPage(msgspec.Struct, frozen=True):
    """One page of runs, newest first; `next_cursor` is None on the last one."""

    items: tuple[RunSummary, ...]
    next_cursor: str | None


class NodeView(msgspec.Struct, frozen=True, kw_only=True):
    """One node. `latest_output_json` is JSON text; an output over 8 KB has `output_ref` instead, the path to read."""

    node: str
    type: str
    status: str
    attempt: int
    title: str
    started_at: int | None
    finished_at: int | None
    latest_output_json: str | None
    output_ref: str | None
    error: ErrorView | None
    waiting_on: WaitingOn | None
    next_retry_at: int | None
    deadline_at: int | None
    child_run_id: str | None
    no_route: bool
    usage: tuple[UsageView, ...] = ()


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """The debug view of a run: every step of its graph. `checkpoints` are the times at which they were reached.

    Of a page through the items of a scatter, `nodes` are that page's, and `next_cursor` leads to the next one.
    """

    run_id: str
    status: str
    transition_seq: int
    db_record_version: int
    waiting_on: WaitingOn | None
    stalled: StallView | None
    nodes: dict[str, NodeView]
    context: JSON
    checkpoints: dict[str, int]
    next_cursor: str | None = None


class UsageView(msgspec.Struct, frozen=True, kw_only=True):
    """What an attempt, or a step's latest one, used of one language model. Latency is the sum over its calls, in ms."""

    provider: str
    model: str
    calls: int
    input_tokens: int
    output_tokens: int
    latency_ms: int


class SaidView(msgspec.Struct, frozen=True, kw_only=True):
    """One entry of a conversation. `kind`: turn (the model `name` answered), tool (the action `name` ran), ended.

    `outcome` is why the model stopped, `succeeded` or the code of the tool's error, or why the conversation ended.
    Content over 8 KB is None and marked large.
    """

    kind: str
    at: int
    took_ms: int
    name: str
    outcome: str
    input_tokens: int = 0
    output_tokens: int = 0
    content: JSON
    content_large: bool = False


class AttemptView(msgspec.Struct, frozen=True, kw_only=True):
    """One execution by a worker. `deliveries` counts the workers that took it, more than one after a loss. `actor` is
    the API key of a worker outside.

    An input or output over 8 KB is None here and marked large; a node's output is read at its own path.
    """

    node: str
    attempt: int
    generation: int
    action: str
    status: str
    deliveries: int
    worker: str
    actor: str
    scheduled_at: int | None
    started_at: int | None
    heartbeat_at: int | None
    finished_at: int | None
    heartbeat_details: JSON
    cancel_requested: bool
    input: JSON
    input_large: bool
    output: JSON
    output_large: bool
    error: ErrorView | None
    usage: tuple[UsageView, ...] = ()
    conversation: tuple[SaidView, ...] = ()


class AttemptPage(msgspec.Struct, frozen=True):
    """One page of attempts by node and number."""

    items: tuple[AttemptView, ...]
    next_cursor: str | None


class EventView(msgspec.Struct, frozen=True, kw_only=True):
    """One entry of a run's history. `kind`: transition, attempt, audit; `data` holds what else the entry says.

    `seq` is the transition's number; an attempt has that of the transition which handed it out.
    """

    seq: int
    at: int
    kind: str
    type: str
    node: str | None
    data: dict[str, JSON]


class EventPage(msgspec.Struct, frozen=True):
    """One page of history, oldest first."""

    items: tuple[EventView, ...]
    next_cursor: str | None


class AuditView(msgspec.Struct, frozen=True, kw_only=True):
    """What became of one operator's request. `outcome`: applied, or rejected with `code` and `message`."""

    seq: int
    at: int
    operation: str
    outcome: str
    actor: str
    request_id: str
    reason: str
    target: str
    code: str
    message: str


class AuditPage(msgspec.Struct, frozen=True):
    """One page of the audit trail, oldest first."""

    items: tuple[AuditView, ...]
    next_cursor: str | None
