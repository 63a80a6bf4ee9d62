"""What a trigger request must look like before a run may exist: size, key, labels, variables. Pure checks."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from ductor.app.refusals import invalid, precondition
from ductor.model.causation import MAX_DEPTH
from ductor.model.definition import Definition
from ductor.model.errors import ErrorCode, RefusedError, Violation, refuse
from ductor.model.json import JSON, encode
from ductor.model.payload import MAX_INPUT_BYTES

MAX_IDEMPOTENCY_KEY: Final = 256
MAX_SUBJECT: Final = 256
MAX_LABELS: Final = 10
MAX_LABEL_ID: Final = 256
MAX_CHECKPOINT_SECONDS: Final = 25
DEFAULT_CHECKPOINT_SECONDS: Final = 20
_LABEL_KEY: Final = re.compile(r"[a-z][a-z0-9_]{0,62}")


class Label(msgspec.Struct, frozen=True):
    """A stable business identity of a run and all its descendants."""

    key: str
    id: str


class TriggerRequest(msgspec.Struct, frozen=True, kw_only=True):
    """How a run is asked for ("Triggering a run" in the product text). `idempotency_key` None = never de-duplicated.

    A missing input is `{}`. `checkpoint_timeout_seconds` None = 20. `depth` is the causation depth of the run.
    """

    input: JSON = msgspec.field(default_factory=dict)
    subject_type: str = ""
    subject_id: str = ""
    idempotency_key: str | None = None
    correlation_labels: tuple[Label, ...] = ()
    variables: dict[str, JSON] = {}
    external_deployment_id: str = ""
    wait_for_checkpoint: bool = False
    checkpoint_timeout_seconds: float | None = None
    depth: int = 0


def check_request(request: TriggerRequest) -> None:
    """Refuse what is wrong with the request whatever definition it names."""
    check_size(request.input, "input")
    check_size(request.variables, "variables")
    _check_key(request.idempotency_key)
    if request.depth > MAX_DEPTH:
        raise too_deep()
    for field in ("subject_type", "subject_id", "external_deployment_id"):
        if len(getattr(request, field)) > MAX_SUBJECT:
            raise invalid("FIELD_INVALID", f"at most {MAX_SUBJECT} characters", field)
    _check_labels(request.correlation_labels)
    seconds = request.checkpoint_timeout_seconds
    if seconds is not None and not 0 <= seconds <= MAX_CHECKPOINT_SECONDS:
        message = f"wait between 0 and {MAX_CHECKPOINT_SECONDS} seconds"
        raise invalid("FIELD_INVALID", message, "checkpoint_timeout_seconds")


def check_size(value: JSON, field: str) -> None:
    """Refuse with 413 what is over 1 MB of JSON, with 400 what cannot be stored as JSON at all.

    Which numbers JSON text may hold is for the reader of requests to say; here they are numbers already.
    """
    try:
        size = len(encode(value))
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise invalid("FIELD_INVALID", f"this value cannot be kept as JSON: {error}", field) from error
    if size > MAX_INPUT_BYTES:
        message = f"{size} bytes of JSON are over the limit of {MAX_INPUT_BYTES}; pass a reference to the data instead"
        raise refuse(ErrorCode.PAYLOAD_TOO_LARGE, "INPUT_TOO_LARGE", message, field)


def too_deep() -> RefusedError:
    """The end of a loop of runs that start each other."""
    message = f"the chain of runs and events that led here is over {MAX_DEPTH} deep; it looks like a loop"
    return precondition("CAUSATION_TOO_DEEP", message)


def request_hash(request: TriggerRequest) -> str:
    """Digest of what makes two requests under one key the same. How long the caller waits is not part of it."""
    same = msgspec.to_builtins(
        msgspec.structs.replace(
            request, idempotency_key=None, wait_for_checkpoint=False, checkpoint_timeout_seconds=None
        )
    )
    del same["depth"]
    return hashlib.sha256(msgspec.json.encode(same, order="sorted")).hexdigest()


def frozen_variables(
    definition: Definition, overrides: Mapping[str, JSON], environment: Mapping[str, JSON]
) -> dict[str, JSON]:
    """VARS of the run: the definition's defaults, over them those of the environment, over them the trigger's.

    A trigger sets only what the definition declares as overridable; one violation per refused name.
    """
    values: dict[str, JSON] = {}
    for name, declared in definition.variables.items():
        values[name] = declared["default"]
    violations = tuple(_override_violations(definition, overrides))
    if violations:
        raise RefusedError(ErrorCode.INVALID_ARGUMENT, "some variables cannot be set by a trigger", violations)
    return {**values, **environment, **overrides}


def _override_violations(definition: Definition, overrides: Mapping[str, JSON]) -> Sequence[Violation]:
    found: list[Violation] = []
    for name in overrides:
        declared = definition.variables.get(name)
        if declared is None:
            found.append(Violation(f"variables.{name}", "VARIABLE_UNKNOWN", "the definition declares no such variable"))
        elif not declared["overridable"]:
            message = "this variable is fixed; publish it with overridable: true to set it per run"
            found.append(Violation(f"variables.{name}", "VARIABLE_NOT_OVERRIDABLE", message))
    return found


def _check_key(key: str | None) -> None:
    if key is not None and not 1 <= len(key) <= MAX_IDEMPOTENCY_KEY:
        message = f"an idempotency key has 1 to {MAX_IDEMPOTENCY_KEY} characters; leave it out to have none"
        raise invalid("IDEMPOTENCY_KEY_INVALID", message, "idempotency_key")


def _check_labels(labels: Sequence[Label]) -> None:
    if len(labels) > MAX_LABELS:
        raise invalid("LABEL_INVALID", f"at most {MAX_LABELS} labels", "correlation_labels")
    found: list[Violation] = []
    seen: set[str] = set()
    for place, label in enumerate(labels):
        field = f"correlation_labels[{place}]"
        if not _LABEL_KEY.fullmatch(label.key):
            message = "a label key starts with a to z, followed by at most 62 of a to z, 0 to 9 and _"
            found.append(Violation(f"{field}.key", "LABEL_INVALID", message))
        elif label.key in seen:
            found.append(Violation(f"{field}.key", "LABEL_INVALID", "each label key may be given once"))
        if not 1 <= len(label.id) <= MAX_LABEL_ID:
            found.append(Violation(f"{field}.id", "LABEL_INVALID", f"a label id has 1 to {MAX_LABEL_ID} characters"))
        seen.add(label.key)
    if found:
        raise RefusedError(ErrorCode.INVALID_ARGUMENT, "correlation_labels are not valid", tuple(found))
