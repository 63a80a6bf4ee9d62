"""The validator: every fault of a definition at once, each with field, code and a way to fix it.

The same rules serve draft edits (as warnings), publication, `:validate` and the offline check.
"""

from __future__ import annotations

from ductor.model.definition import Step
from ductor.model.enums import StepType
from ductor.model.errors import Severity, Violation
from ductor.model.json import JSON
from ductor.steps.registry import STEP_SPECS
from ductor.validation.completion import completed
from ductor.validation.context import Context, Standing
from ductor.validation.document import Reading, read_document
from ductor.validation.entitlements import check_entitlements
from ductor.validation.expressions import Checker
from ductor.validation.fields import check_fields
from ductor.validation.found import Found
from ductor.validation.graph import ancestors, check_graph
from ductor.validation.models import check_models
from ductor.validation.nesting import check_nesting
from ductor.validation.schedule import check_schedule, check_scheduled_input
from ductor.validation.view import View


def validate(raw: JSON, context: Context) -> list[Violation]:
    """Every fault of any JSON value as a definition. Never raises; the size limits are judged before all else.

    Errors refuse publication (`refuses`), warnings do not, and `unresolved` says what only a server can decide.
    """
    reading = read_document(raw)
    if reading.too_large:
        return reading.broken
    found = Found()
    found.broken.extend(reading.broken)
    found.faults.extend(reading.faults)
    if reading.sound:
        _check_document(reading, context, found)
    return found.broken + found.faults


def refuses(violations: list[Violation]) -> bool:
    """Whether any of them keeps the definition from being published."""
    return any(violation.severity is Severity.ERROR for violation in violations)


def _check_document(reading: Reading, context: Context, found: Found) -> None:
    document = completed(reading.document, context)
    view = View(document, context.catalog)
    order = check_graph(view, found)
    for step in view.steps:
        if step is not None:
            _check_step(step, view, context, found)
    Checker(view, ancestors(view, order), check_nesting(view, order, found), found).check()
    check_fields(view, context, found)
    check_entitlements(view, context, found)
    if "schedule" in document:
        check_schedule(document["schedule"], context.now, found)
    if "input_schema" in document:
        from ductor.validation.input_schema import check_input_schema

        broken = list(check_input_schema(document["input_schema"]))
        for violation in broken:
            found.add(violation)
        if "schedule" in document and not broken:
            check_scheduled_input(document["schedule"], document["input_schema"], found)


def _check_step(step: Step, view: View, context: Context, found: Found) -> None:
    spec = STEP_SPECS[step.type]
    if not spec.executable:
        message = f"this release does not run {step.type.value} steps yet; keep the draft, or use another step type"
        found.fault(f"{step.ref}.type", "STEP_TYPE_UNKNOWN", message)
    for violation in spec.validate(step, view):
        found.add(violation)
    if step.type is StepType.SUBWORKFLOW:
        _check_family(step, view, context, found)
    check_models(step, view, context, found)


def _check_family(step: Step, view: View, context: Context, found: Found) -> None:
    slug = step.args.get("family_slug") if isinstance(step.args, dict) else None
    if not isinstance(slug, str):
        return
    standing = context.family(slug)
    field = f"{step.ref}.args.family_slug"
    if slug == view.document.get("family_slug"):
        message = "a workflow cannot run itself as a subworkflow; loop with a trigger or continue as new"
        found.fault(field, "SUBWORKFLOW_RECURSION", message)
        return
    if standing is Standing.UNKNOWN:
        message = f"no published workflow has the family '{slug[:64]}'; publish it first or correct the name"
        found.fault(field, "SUBWORKFLOW_UNKNOWN", message)
    elif standing is Standing.UNRESOLVED:
        message = f"whether '{slug[:64]}' is published is known to the server only"
        found.fault(field, "SUBWORKFLOW_UNKNOWN", message, Severity.UNRESOLVED)
    number = step.args.get("version")
    if standing is not Standing.KNOWN or not isinstance(number, int) or isinstance(number, bool):
        return
    if context.version(slug, number) is Standing.UNKNOWN:
        message = f"'{slug[:64]}' has no version {number}; leave it out to pin the newest one"
        found.fault(f"{step.ref}.args.version", "SUBWORKFLOW_UNKNOWN", message)
