"""What AI steps refer to: connections that lead to models, the tools' own connections, the schema of the answer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ductor.model.definition import Step
from ductor.model.enums import StepType
from ductor.model.errors import Severity, Violation
from ductor.steps import ai_agent, reading
from ductor.steps.ai_action import CODE, CONNECTION_TYPES
from ductor.steps.reading import clipped
from ductor.validation.connections import DIRECT, Call, check_connection
from ductor.validation.context import Context, Standing
from ductor.validation.found import Found
from ductor.validation.view import View

AI_STEPS: Final = frozenset({StepType.AI_ACTION, StepType.AI_AGENT})


def check_models(step: Step, view: View, context: Context, found: Found) -> None:
    """Report what an AI step refers to in vain. The shape of its args is judged elsewhere."""
    if step.type not in AI_STEPS:
        return
    _check_model_connection(step, context, found)
    schema = step.args.get("output_schema") if isinstance(step.args, dict) else None
    if isinstance(schema, dict):
        for violation in _schema_faults(step, schema):
            found.add(violation)
    if step.type is StepType.AI_AGENT:
        _check_tools(step, view, context, found)


def _check_model_connection(step: Step, context: Context, found: Found) -> None:
    """That it exists is checked as for every step."""
    ref, mode = step.connection_ref, step.connection_ref_mode or DIRECT
    if not ref or "${{" in ref or context.connection(mode, ref) is not Standing.KNOWN:
        return
    kind = context.connection_type(mode, ref)
    if kind and kind not in CONNECTION_TYPES:
        usable = " or ".join(sorted(CONNECTION_TYPES))
        message = f"'{clipped(ref)}' is a connection of type {kind}; models are behind those of type {usable}"
        found.fault(f"{step.ref}.connection_ref", "CONNECTION_UNKNOWN", message)


def _schema_faults(step: Step, schema: dict[str, object]) -> Iterator[Violation]:
    """The rules of an `input_schema` hold for answers too."""
    from ductor.validation.input_schema import check_input_schema

    for violation in check_input_schema(schema):
        path = violation.field.removeprefix("input_schema")
        yield Violation(f"{step.ref}.args.output_schema{path}", CODE, violation.message, Severity.ERROR)


def _check_tools(step: Step, view: View, context: Context, found: Found) -> None:
    args, _ = reading.read(ai_agent.Args, step.args)
    for index, tool in enumerate(args.toolset() if args is not None else ()):
        if tool.action not in view.catalog:
            continue
        at = f"{step.ref}.args.tools[{index}]"
        if tool.connection_ref_mode and not tool.connection_ref:
            message = "connection_ref_mode says how to read connection_ref; give that too, or remove the mode"
            found.fault(f"{at}.connection_ref", "CONNECTION_REQUIRED", message)
            continue
        needed = view.catalog.connection_type(tool.action)
        ref = tool.connection_ref or needed
        check_connection(Call(at, tool.action, ref, tool.connection_ref_mode), view, context, found)
