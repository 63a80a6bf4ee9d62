"""How an operator's `resolve` ends a waiting node: the same for every type that can be resolved."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec

from ductor.engine.context import NodeContext
from ductor.engine.outcome import complete, fail
from ductor.model.errors import StepError
from ductor.model.intent import Intent, IntentKind
from ductor.model.json import JSON
from ductor.model.transition import Transition

RESOLVED_AS_ERROR: Final = "RESOLVED_AS_ERROR"
"""The error code of a node that was resolved as failed without one."""


class Resolution(msgspec.Struct, frozen=True, omit_defaults=True):
    """Body of a resolve intent; the payload is the intent's `output`. `failed`: the node fails as the rest says."""

    failed: bool = False
    code: str = RESOLVED_AS_ERROR
    message: str = "an operator resolved the step as failed"
    details: JSON = None


def refuses_all_but_resolve(ctx: NodeContext, intent: Intent) -> tuple[str, str] | None:
    """The answer of a type that is resolved but not approved or rejected."""
    if intent.kind is IntentKind.RESOLVE:
        return None
    return "STEP_TYPE_WRONG", f"a step of type {ctx.node.step.type.value} takes no {intent.kind.value}"


def resolved(ctx: NodeContext, intent: Intent) -> Iterable[Transition]:
    """The node ends with the payload as its output, or with the error that the operator gave."""
    resolution = msgspec.convert(intent.body, Resolution)
    if not resolution.failed:
        return complete(ctx, intent.output)
    error = StepError(resolution.code, resolution.message, retryable=False, details=resolution.details)
    return fail(ctx, error, output=intent.output)
