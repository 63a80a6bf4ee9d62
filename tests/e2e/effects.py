"""An action with an effect that outlives the process: a line in a file, written before it returns."""

from __future__ import annotations

import os

from ductor.actions.context import ActionContext
from ductor.actions.registry import action

EFFECTS = "DUCTOR_TEST_EFFECTS"


@action("test.effect", blocking=False)
def effect(args: dict[str, object], ctx: ActionContext) -> dict[str, object]:
    """Append one line per execution."""
    line = f"{ctx.run_id} {ctx.node} {ctx.attempt} {ctx.deliveries}\n"
    descriptor = os.open(os.environ[EFFECTS], os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600)
    try:
        os.write(descriptor, line.encode())
    finally:
        os.close(descriptor)
    return {"done": True}
