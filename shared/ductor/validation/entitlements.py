"""What the tenant's plan allows a definition to hold."""

from __future__ import annotations

from typing import Final

from ductor.validation.context import Context
from ductor.validation.found import Found
from ductor.validation.view import View

CODE: Final = "ENTITLEMENT_REQUIRED"


def check_entitlements(view: View, context: Context, found: Found) -> None:
    """Report every step of a type that the plan does not allow, and too many steps."""
    if context.max_steps and len(view.raw_steps) > context.max_steps:
        message = f"{len(view.raw_steps)} steps, and this tenant's plan allows {context.max_steps}; split the workflow"
        found.fault("steps", CODE, message)
    if context.step_types is None:
        return
    for step in view.steps:
        if step is not None and step.type not in context.step_types:
            message = f"this tenant's plan does not allow {step.type.value} steps; ask for a larger plan"
            found.fault(f"{step.ref}.type", CODE, message)
