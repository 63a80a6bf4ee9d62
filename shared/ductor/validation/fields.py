"""Rules of a document's other fields: variables, triggers, checkpoints, hooks, connections, the environment."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from ductor.model.definition import Step
from ductor.model.errors import Severity
from ductor.model.json import JSON
from ductor.steps import common
from ductor.steps.action import action_faults
from ductor.steps.reading import clipped, nearest
from ductor.validation.connections import Call, check_connection
from ductor.validation.context import Context, Standing
from ductor.validation.document import is_declaration, lifted_policy
from ductor.validation.found import Found
from ductor.validation.view import Json, View, objects

RESERVED: Final = "ductor."
"""The namespace of visibility attributes that only the runtime writes (durable runs: Correlate a run tree)."""

_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}", re.ASCII)
_PATTERN: Final = re.compile(r"[^\s*.\x00-\x1f]+(?:\.[^\s*.\x00-\x1f]+)*(?:\.\*)?")
_MAX_PATTERN: Final = 200


def check_fields(view: View, context: Context, found: Found) -> None:
    """Report every fault outside of the graph, the expressions and the schedule."""
    document = view.document
    _environment(document.get("environment"), context, found)
    _variables(document.get("variables", {}), found)
    _triggers(objects(document.get("triggers")), found)
    _checkpoints(objects(document.get("checkpoints")), view, found)
    for name, hook in document.get("hooks", {}).items():
        _action(f"hooks.{name}", hook.get("action"), hook.get("args"), view, found)
        check_connection(Call(f"hooks.{name}", hook.get("action"), hook.get("connection_ref")), view, context, found)
    for raw, step in zip(view.raw_steps, view.steps, strict=True):
        if step is not None:
            _step(raw, step, view, context, found)


def _environment(key: JSON, context: Context, found: Found) -> None:
    if not isinstance(key, str) or not key:
        return
    standing = context.environment(key)
    if standing is Standing.UNKNOWN:
        message = f"no active environment has the key '{clipped(key)}'; use its key, not its id"
        found.fault("environment", "ENVIRONMENT_UNKNOWN", message)
    elif standing is Standing.NOT_WRITABLE:
        message = f"'{clipped(key)}' does not accept direct changes from this key; choose another environment"
        found.fault("environment", "ENVIRONMENT_NOT_WRITABLE", message)
    elif standing is Standing.UNRESOLVED:
        message = f"whether '{clipped(key)}' exists and can be written is known to the server only"
        found.fault("environment", "ENVIRONMENT_UNKNOWN", message, Severity.UNRESOLVED)


def _variables(variables: Mapping[str, JSON], found: Found) -> None:
    for name, value in variables.items():
        at = f"variables.{clipped(name)}"
        if _VARIABLE.fullmatch(name) is None:
            found.fault(at, "FIELD_INVALID", "name a variable with letters, digits and _, at most 64, no digit first")
        if is_declaration(value) and not isinstance(value.get("overridable", False), bool):
            found.fault(f"{at}.overridable", "FIELD_INVALID", "must be true or false")


def _triggers(triggers: JSON, found: Found) -> None:
    for index, trigger in enumerate(triggers):
        at, code = f"triggers[{index}].patterns", "TRIGGER_PATTERN_INVALID"
        patterns = trigger.get("patterns")
        if patterns == []:
            found.fault(at, code, "give at least one pattern, for example stripe.invoice.paid")
        for place, pattern in enumerate(patterns or ()):
            usable = isinstance(pattern, str) and len(pattern) <= _MAX_PATTERN
            if usable and _PATTERN.fullmatch(pattern) is None:
                message = "must be a literal event name or end in `.*`, for example stripe.invoice.*"
                found.fault(f"{at}[{place}]", code, message)
            elif not usable:
                found.fault(f"{at}[{place}]", code, f"must be at most {_MAX_PATTERN} characters")


def _checkpoints(checkpoints: JSON, view: View, found: Found) -> None:
    names: dict[str, int] = {}
    responses: list[int] = []
    for index, checkpoint in enumerate(checkpoints):
        at, code = f"checkpoints[{index}]", "CHECKPOINT_INVALID"
        name, ref = checkpoint.get("name"), checkpoint.get("step_ref")
        if isinstance(name, str) and names.setdefault(name, index) != index:
            found.fault(f"{at}.name", code, f"checkpoints[{names[name]}] has this name too; rename one")
        if isinstance(ref, str) and ref not in view.refs:
            near = nearest(ref, view.refs) if found.may_suggest() else None
            hint = f"did you mean '{near}'?" if near else "name a step of this definition"
            found.fault(f"{at}.step_ref", code, f"no step has the ref '{clipped(ref)}'; {hint}")
        if checkpoint.get("response") is True:
            responses.append(index)
            if len(responses) > 1:
                message = f"checkpoints[{responses[0]}] is the response checkpoint already; at most one can be"
                found.fault(f"{at}.response", code, message)


def _step(raw: Json, step: Step, view: View, context: Context, found: Found) -> None:
    _redaction(raw, step, found)
    _step_connection(raw, step, view, context, found)
    for name in step.effects.visibility if step.effects else ():
        if name.lower().startswith(RESERVED):
            message = f"the namespace {RESERVED} is written by the runtime only; rename it, or send correlation_labels"
            found.fault(f"{step.ref}.effects.visibility.{clipped(name)}", "RESERVED_ATTRIBUTE", message)
    if step.compensation is None:
        return
    for path, target in common.targets(step.compensation):
        at = f"{step.ref}.{path}"
        if target.action:
            _action(at, target.action, target.args, view, found)
        else:
            found.fault(f"{at}.action", "COMPENSATION_INVALID", "name the action that undoes the step")
        check_connection(Call(at, target.action, target.connection_ref), view, context, found)


def _redaction(raw: Json, step: Step, found: Found) -> None:
    if step.type.value != "dataflow":
        return
    inner, outer = lifted_policy(raw), raw.get("redaction_policy")
    if inner is not None and inner not in ("hashed", "none", "omit"):
        message = "must be one of hashed, none, omit"
        found.fault(f"{step.ref}.args.redaction_policy", "FIELD_INVALID", message)
    elif inner is not None and outer is not None and inner != outer:
        message = f"differs from the step's redaction_policy '{clipped(str(outer))}'; give one of the two"
        found.fault(f"{step.ref}.args.redaction_policy", "FIELD_INVALID", message)


def _step_connection(raw: Json, step: Step, view: View, context: Context, found: Found) -> None:
    if not step.connection_ref and raw.get("connection_ref_mode") is not None:
        message = "connection_ref_mode says how to read connection_ref; give that too, or remove the mode"
        found.fault(f"{step.ref}.connection_ref", "CONNECTION_REQUIRED", message)
    else:
        call = Call(step.ref, step.action, step.connection_ref, step.connection_ref_mode)
        check_connection(call, view, context, found)


def _action(at: str, name: JSON, args: JSON, view: View, found: Found) -> None:
    if isinstance(name, str) and name:
        for violation in action_faults(at, name, args, view):
            found.add(violation)
