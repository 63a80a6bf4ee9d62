"""Raw JSON to a canonical document, to the engine's Definition and to the API's spelling. Judges the shape only."""

from __future__ import annotations

from typing import Final

import msgspec

from ductor.model.definition import MAX_EDGES, MAX_STEPS, Definition
from ductor.model.enums import EdgeType, StepType
from ductor.model.errors import Violation
from ductor.model.json import JSON
from ductor.steps.reading import clipped
from ductor.validation.document_shape import DOCUMENT
from ductor.validation.found import Found
from ductor.validation.shapes import MISSING
from ductor.validation.sound import unsound

_RETRY: Final = "retry_"


class Reading(msgspec.Struct, frozen=True):
    """A document in canonical form and what its shape alone shows.

    Canonical: `ref` for `id`, enums short and lower-case where they are known, no nulls for absent fields, nothing of
    a wrong type. `broken` refuses every save; `faults` only publication. `sound` is false when the values themselves
    are not safe to look into (nesting, integers beyond 64 bits, …); `too_large` when nothing was looked at.
    """

    document: dict[str, JSON]
    broken: list[Violation]
    faults: list[Violation]
    sound: bool = True
    too_large: bool = False


def read_document(raw: JSON) -> Reading:
    """Read any JSON value as a definition document. Never raises; the size is judged before anything else."""
    if (violation := size_violation(raw)) is not None:
        return Reading({}, [violation], [], too_large=True)
    found = Found()
    damage = unsound(raw)
    found.broken.extend(damage)
    document = DOCUMENT.read(raw, "", found)
    if document is MISSING:
        return Reading({}, found.broken, found.faults, sound=False)
    _duplicate_refs(document, found)
    return Reading(document, found.broken, found.faults, sound=not damage)


def check_saveable(raw: JSON) -> list[Violation]:
    """What refuses even the save of a draft: size, wrong JSON types, unknown fields, duplicate refs. All of it."""
    return read_document(raw).broken


def canonical(raw: JSON) -> dict[str, JSON]:
    """The canonical document of something that `check_saveable` accepts; faulty values stay as they were written."""
    return read_document(raw).document


def size_violation(raw: JSON) -> Violation | None:
    """The single violation of an oversized definition (define and publish: Definition size limits)."""
    if not isinstance(raw, dict):
        return None
    for field, limit in (("steps", MAX_STEPS), ("edges", MAX_EDGES)):
        items = raw.get(field)
        if isinstance(items, list) and len(items) > limit:
            message = f"{len(items)} {field}, and at most {limit} are allowed; split the workflow into subworkflows"
            return Violation(field, "DEFINITION_TOO_LARGE", message)
    return None


def _duplicate_refs(document: dict[str, JSON], found: Found) -> None:
    seen: dict[str, str] = {}
    for step in document.get("steps", ()):
        ref = step.get("ref") if isinstance(step, dict) else None
        if not isinstance(ref, str):
            continue
        first = seen.get(ref.lower())
        if first is None:
            seen[ref.lower()] = ref
            continue
        shown = clipped(ref)
        same = "twice" if first == ref else f"beside '{clipped(first)}' (upper and lower case are the same)"
        found.breaks(f"{shown}.ref", "STEP_REF_DUPLICATE", f"'{shown}' is used {same}; rename one of the steps")


def to_definition(document: JSON) -> Definition:
    """The complete, frozen form that the engine runs. For documents that validate; raises ValueError for others."""
    body = dict(canonical(document))
    body["steps"] = [_engine_step(step) for step in body.get("steps", ())]
    body["variables"] = {name: declared(value) for name, value in body.get("variables", {}).items()}
    try:
        return msgspec.convert(body, Definition)
    except msgspec.ValidationError as error:
        raise ValueError(f"not a valid definition: {error}") from None


def _engine_step(step: dict[str, JSON]) -> dict[str, JSON]:
    out = _engine_target(step)
    if out.get("type") == StepType.DATAFLOW and "redaction_policy" not in out:
        policy = lifted_policy(out)
        if policy is not None:
            out["redaction_policy"] = policy
    if out.get("connection_ref"):
        out.setdefault("connection_ref_mode", "direct")
    if "compensation" in out:
        out["compensation"] = {
            name: [_engine_target(target) for target in value] if isinstance(value, list) else value
            for name, value in out["compensation"].items()
        }
    return out


def _engine_target(flat: dict[str, JSON]) -> dict[str, JSON]:
    """Flat retry fields become one Retry; whatever else stays."""
    out: dict[str, JSON] = {}
    retry: dict[str, JSON] = {}
    for name, value in flat.items():
        if name.startswith(_RETRY):
            retry[name.removeprefix(_RETRY)] = value
        elif name == "non_retryable_codes":
            retry[name] = value
        else:
            out[name] = value
    if retry:
        out["retry"] = retry
    return out


def lifted_policy(step: dict[str, JSON]) -> JSON:
    """The redaction policy that a dataflow step has in its args, in canonical spelling; None without one."""
    args = step.get("args")
    policy = args.get("redaction_policy") if isinstance(args, dict) else None
    return policy.lower().removeprefix("redaction_policy_") if isinstance(policy, str) else policy


def declared(value: JSON) -> dict[str, JSON]:
    """A variable as `{default, overridable}`. A plain value is a default that triggers cannot override."""
    if is_declaration(value):
        return {"default": value.get("default"), "overridable": value.get("overridable") is True}
    return {"default": value, "overridable": False}


def is_declaration(value: JSON) -> bool:
    """Whether a variable is written in its long form."""
    return isinstance(value, dict) and bool(value) and value.keys() <= {"default", "overridable"}


def to_wire(document: dict[str, JSON]) -> dict[str, JSON]:
    """A canonical document as the API answers it: step and edge types in their long spelling, all else unchanged."""
    out = dict(document)
    if "steps" in out:
        out["steps"] = [_long(step, StepType) for step in out["steps"]]
    if "edges" in out:
        out["edges"] = [_long({"type": "success"} | edge, EdgeType) for edge in out["edges"]]
    return out


def _long(item: JSON, enum: type[StepType] | type[EdgeType]) -> JSON:
    text = item.get("type") if isinstance(item, dict) else None
    member = enum.parse(text) if isinstance(text, str) else None
    return item if member is None else item | {"type": member.wire}
