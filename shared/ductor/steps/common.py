"""What every step has whatever its type: the expressions outside its args, grouped by when they run."""

from __future__ import annotations

from collections.abc import Iterator

from ductor.model.definition import Compensation, CompensationTarget, Step
from ductor.steps.spec import Expression, ExpressionKind


def before(step: Step) -> Iterator[Expression]:
    """Evaluated when the step becomes ready, before its args."""
    if step.condition:
        yield Expression("condition", step.condition, ExpressionKind.CONDITION)
    if step.connection_ref:
        yield Expression("connection_ref", step.connection_ref, ExpressionKind.TEMPLATE)


def after(step: Step) -> Iterator[Expression]:
    """Evaluated when the step has completed: these may read the step itself."""
    if step.effects is None:
        return
    for group, values in (("context", step.effects.context), ("visibility", step.effects.visibility)):
        for name, source in values.items():
            yield Expression(f"effects.{group}.{name}", source)


def at_end(step: Step) -> Iterator[Expression]:
    """Evaluated when the run has ended: these may read every step."""
    if step.compensation is None:
        return
    for path, target in targets(step.compensation):
        if target.args is not None:
            yield Expression(f"{path}.args", target.args, ExpressionKind.TEMPLATE)
        if target.connection_ref:
            yield Expression(f"{path}.connection_ref", target.connection_ref, ExpressionKind.TEMPLATE)


def targets(compensation: Compensation) -> Iterator[tuple[str, CompensationTarget]]:
    """Each target with its path below the step."""
    groups = (
        ("on_failure", compensation.on_failure),
        ("on_cancel", compensation.on_cancel),
        ("finally", compensation.finally_),
    )
    for name, group in groups:
        for index, target in enumerate(group):
            yield f"compensation.{name}[{index}]", target
