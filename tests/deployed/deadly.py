"""An action that kills the function which runs it, the first time that a run calls it. Goes into a layer of its own."""

from __future__ import annotations

import os
from pathlib import Path

from ductor.actions.context import ActionContext
from ductor.actions.registry import action


@action("test.die_once", blocking=False)
def die_once(args: dict[str, object], ctx: ActionContext) -> dict[str, object]:
    """End the process without a word unless the file `mark` exists; it is made first."""
    mark = Path(str(args["mark"]))
    if not mark.exists():
        mark.touch()
        os._exit(1)
    return {"survived": True, "deliveries": ctx.deliveries}
