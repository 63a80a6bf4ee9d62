"""The definition document as the engine reads it: complete, normalised, frozen. Drafts are looser, see `validation`."""

from __future__ import annotations

from typing import Final

import msgspec

from ductor.model.enums import DefinitionStatus, EdgeType, Join, OnError, RedactionPolicy, StepType
from ductor.model.json import JSON

MAX_STEPS: Final = 500
MAX_EDGES: Final = 5_000


class Retry(msgspec.Struct, frozen=True, omit_defaults=True):
    """Retry policy of a step. `max_attempts` counts all attempts, the first included. Times are milliseconds."""

    max_attempts: int = 1
    backoff_ms: int = 1_000
    backoff_multiplier: float = 2.0
    max_backoff_ms: int = 300_000
    jitter: float = 0.1
    max_elapsed_ms: int = 0
    non_retryable_codes: tuple[str, ...] = ()


class Effects(msgspec.Struct, frozen=True, omit_defaults=True):
    """CEL by key, evaluated when the step completes: into the run context, and into visibility attributes."""

    context: dict[str, str] = {}
    visibility: dict[str, str] = {}


class CompensationTarget(msgspec.Struct, frozen=True, omit_defaults=True):
    """An inverse or final action."""

    action: str
    args: JSON = None
    connection_ref: str = ""
    retry: Retry = Retry()
    timeout_ms: int = 0


class Compensation(msgspec.Struct, frozen=True, omit_defaults=True):
    """What undoes a step, and what always runs."""

    on_failure: tuple[CompensationTarget, ...] = ()
    on_cancel: tuple[CompensationTarget, ...] = ()
    finally_: tuple[CompensationTarget, ...] = msgspec.field(name="finally", default=())
    failure_policy: str = "manual_repair"


class Step(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """One step. `args` is the type's own document; `condition` is CEL, false means skipped."""

    ref: str
    type: StepType
    title: str = ""
    description: str = ""
    action: str = ""
    args: JSON = msgspec.field(default_factory=dict)
    condition: str = ""
    connection_ref: str = ""
    connection_ref_mode: str = ""
    retry: Retry = Retry()
    timeout_ms: int = 0
    heartbeat_timeout_ms: int = 0
    on_error: OnError = OnError.FAIL
    join: Join = Join.ANY
    effects: Effects | None = None
    compensation: Compensation | None = None
    redaction_policy: RedactionPolicy = RedactionPolicy.HASHED


class Edge(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """One edge. `condition` is CEL."""

    source_ref: str
    target_ref: str
    type: EdgeType = EdgeType.SUCCESS
    condition: str = ""


class Trigger(msgspec.Struct, frozen=True, omit_defaults=True):
    """An event that starts runs."""

    patterns: tuple[str, ...]
    condition: str = ""
    input: JSON = None
    correlation_labels: JSON = None


class Checkpoint(msgspec.Struct, frozen=True, omit_defaults=True):
    """A named progress marker, reached when its step completes."""

    name: str
    step_ref: str
    response: bool = False
    output: JSON = None


class Definition(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """A published document. `variables` maps names to `{default, overridable}`; `run_timeout_ms` 0 = none.

    `pins` are the definition ids of the versions that its subworkflow steps run, found when it was published.
    """

    family_slug: str
    environment: str = ""
    title: str = ""
    description: str = ""
    tags: tuple[str, ...] = ()
    steps: tuple[Step, ...] = ()
    edges: tuple[Edge, ...] = ()
    variables: dict[str, JSON] = {}
    input_schema: JSON = None
    output: JSON = None
    triggers: tuple[Trigger, ...] = ()
    checkpoints: tuple[Checkpoint, ...] = ()
    schedule: JSON = None
    run_timeout_ms: int = 0
    hooks: dict[str, JSON] = {}
    concurrency: JSON = None
    pins: dict[str, str] = {}


class DefinitionRow(msgspec.Struct, kw_only=True, omit_defaults=True):
    """A stored definition: a draft (any document that may be saved) or an immutable published version.

    `document` is the JSON document in canonical form (long or short enum spellings both readable). Times: epoch ms.
    `version` of a draft is the number its next publication would get.
    """

    id: str
    tenant: str
    family_slug: str
    status: DefinitionStatus
    version: int
    document: dict[str, JSON]
    draft_revision: int = 0
    created_at: int = 0
    updated_at: int = 0
    published_at: int = 0
    created_by: str = ""
    updated_by: str = ""
