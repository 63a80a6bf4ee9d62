"""The definition document: its fields, their types and their bounds. Rules across fields are elsewhere."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Final

from ductor.model.definition import MAX_EDGES, MAX_STEPS
from ductor.model.enums import EdgeType, Join, OnError, RedactionPolicy, StepType
from ductor.model.json import JSON
from ductor.model.slots import OnLimit
from ductor.steps.spec import MAX_TIMEOUT_MS
from ductor.steps.subworkflow import FAMILY_PATTERN
from ductor.validation.shapes import Anything, Choice, Flag, Integer, Many, Mapped, Number, Record, Shape, Table, Text

REF: Final = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}", re.ASCII)
MAX_BACKOFF_MS: Final = 86_400_000
ENVELOPE_TYPE: Final = "workflow_definition"

SERVER_OWNED: Final = frozenset(
    {
        "id",
        "tenant",
        "status",
        "version",
        "draft_revision",
        "created_at",
        "updated_at",
        "published_at",
        "archived_at",
        "created_by",
        "updated_by",
        "warnings",
        "metadata",
    }
)


class ConnectionMode(StrEnum):
    """How `connection_ref` is read: as a connection's id or slug, or as a name that the environment maps to one."""

    DIRECT = "direct"
    ENVIRONMENT = "environment"


class FailurePolicy(StrEnum):
    """What a failed compensation target does."""

    MANUAL_REPAIR = "manual_repair"
    FAIL_COMPENSATION = "fail_compensation"
    IGNORE_WITH_AUDIT = "ignore_with_audit"


class OverlapPolicy(StrEnum):
    """What an occurrence does while a run of the family is active."""

    SKIP = "skip"
    ALLOW_ALL = "allow_all"


def step_label(step: JSON, index: int) -> str:
    """How fields name a step: by its ref, or by its place when it has no usable one."""
    ref = (step.get("ref") or step.get("id")) if isinstance(step, dict) else None
    return ref if isinstance(ref, str) and REF.fullmatch(ref) else f"steps[{index}]"


def _retry() -> dict[str, Shape]:
    code = "RETRY_INVALID"
    return {
        "retry_max_attempts": Integer(1, 100, code),
        "retry_backoff_ms": Integer(0, MAX_BACKOFF_MS, code),
        "retry_backoff_multiplier": Number(1, 10, code),
        "retry_max_backoff_ms": Integer(0, MAX_BACKOFF_MS, code),
        "retry_jitter": Number(0, 1, code),
        "retry_max_elapsed_ms": Integer(0, MAX_TIMEOUT_MS, code),
        "non_retryable_codes": Many(Text(at_least=1, at_most=200, code=code), 100),
    }


_CODE = "COMPENSATION_INVALID"
_TIMEOUT = Integer(0, MAX_TIMEOUT_MS)
_CEL = Text()

TARGET: Final = Record(
    {
        "action": Text(at_least=1, code=_CODE),
        "args": Mapped(_CODE),
        "connection_ref": Text(code=_CODE),
        **_retry(),
        "timeout_ms": Integer(0, MAX_TIMEOUT_MS, _CODE),
    },
    code=_CODE,
)

COMPENSATION: Final = Record(
    {
        "on_failure": Many(TARGET, 50),
        "on_cancel": Many(TARGET, 50),
        "finally": Many(TARGET, 50),
        "failure_policy": Choice(FailurePolicy, "FAILURE_POLICY", _CODE),
    },
    code=_CODE,
)

STEP: Final = Record(
    {
        "ref": Text(
            pattern=REF.pattern,
            says="must start with a letter and hold at most 64 letters, digits, _ and -",
            code="STEP_REF_INVALID",
        ),
        "type": Choice(StepType, "STEP_TYPE", "STEP_TYPE_UNKNOWN"),
        "title": Text(at_most=200),
        "description": Text(at_most=4_000),
        "action": Text(at_most=200),
        "args": Mapped(),
        "condition": _CEL,
        "connection_ref": Text(at_most=8_192),
        "connection_ref_mode": Choice(ConnectionMode, "CONNECTION_REF_MODE"),
        **_retry(),
        "timeout_ms": _TIMEOUT,
        "heartbeat_timeout_ms": _TIMEOUT,
        "on_error": Choice(OnError, "ON_ERROR"),
        "join": Choice(Join, "JOIN"),
        "effects": Record({"context": Table(_CEL), "visibility": Table(_CEL)}),
        "compensation": COMPENSATION,
        "redaction_policy": Choice(RedactionPolicy, "REDACTION_POLICY"),
    },
    required=("ref", "type"),
    aliases={"id": "ref"},
)

EDGE: Final = Record(
    {
        "source_ref": Text(at_least=1),
        "target_ref": Text(at_least=1),
        "type": Choice(EdgeType, "EDGE_TYPE", "EDGE_TYPE_INVALID", also=(True, False)),
        "condition": _CEL,
    },
    required=("source_ref", "target_ref"),
)

TRIGGER: Final = Record(
    {
        "patterns": Many(Text(code="TRIGGER_PATTERN_INVALID"), 100),
        "condition": _CEL,
        "input": Anything(),
        "correlation_labels": Anything(),
    },
    required=("patterns",),
)

CHECKPOINT: Final = Record(
    {
        "name": Text(at_least=1, at_most=100, code="CHECKPOINT_INVALID"),
        "step_ref": Text(code="CHECKPOINT_INVALID"),
        "response": Flag(),
        "output": Anything(),
    },
    required=("name", "step_ref"),
)

SCHEDULE: Final = Record(
    {
        "cron": Text(code="SCHEDULE_CRON_INVALID"),
        "rate": Text(code="SCHEDULE_CRON_INVALID"),
        "timezone": Text(code="SCHEDULE_TIMEZONE_INVALID"),
        "overlap_policy": Choice(OverlapPolicy, "OVERLAP_POLICY", "SCHEDULE_OVERLAP_POLICY_INVALID"),
        "start_at": Text(),
        "end_at": Text(),
        "jitter_ms": Integer(0, MAX_BACKOFF_MS),
        "input": Anything(),
        "paused": Flag(),
        "catch_up_window_ms": Integer(0, MAX_TIMEOUT_MS),
    }
)

HOOK: Final = Record({"action": Text(at_least=1), "args": Mapped(), "connection_ref": Text()}, required=("action",))

DOCUMENT: Final = Record(
    {
        "environment": Text(at_most=100),
        "family_slug": Text(
            pattern=FAMILY_PATTERN.strip("^$"),
            says="must start with a lower-case letter and hold at most 63 lower-case letters, digits, _ and -",
        ),
        "title": Text(at_most=200),
        "description": Text(at_most=4_000),
        "tags": Many(Text(at_least=1, at_most=50), 20),
        "steps": Many(STEP, MAX_STEPS, step_label),
        "edges": Many(EDGE, MAX_EDGES),
        "variables": Table(Anything()),
        "input_schema": Mapped("INPUT_SCHEMA_INVALID"),
        "output": Anything(),
        "triggers": Many(TRIGGER, 100),
        "checkpoints": Many(CHECKPOINT, 500),
        "schedule": SCHEDULE,
        "run_timeout_ms": _TIMEOUT,
        "hooks": Record({"on_completed": HOOK, "on_failed": HOOK, "on_cancelled": HOOK}),
        "concurrency": Record(
            {
                "key": Text(at_least=1),
                "limit": Integer(1, 100_000),
                "on_limit": Choice(OnLimit, "ON_LIMIT"),
            },
            required=("key", "limit"),
        ),
    },
    required=("family_slug",),
    server_owned=SERVER_OWNED,
)
