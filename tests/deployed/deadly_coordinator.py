"""The coordinator with two ways to die, each chosen for a run by a file. In a layer of its own, for a while.

Nothing of it runs Ductor differently: it is killed as the kernel kills a process that is out of memory.
"""

from __future__ import annotations

import json
import os
import signal
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ductor.app.commit import Committer
from ductor.bootstrap.aws_functions import coordinator

PLACE = Path(tempfile.gettempdir())
"""The emulator's own folder, which all of its functions share."""

_commit = Committer.commit
_handle = coordinator()


def _commit_or_die(self: Committer, graph: Any, state: Any, intents: Sequence[Any], *rest: Any, **more: Any) -> Any:
    """As long as the file `poison-<run>` exists, whoever ticks that run is killed."""
    if (PLACE / f"poison-{state.run_id}").exists():
        _die()
    return _commit(self, graph, state, intents, *rest, **more)


def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Write down what was delivered. When `lose-<run>` exists it is removed, and nobody hears of the work done."""
    groups = [record["attributes"]["MessageGroupId"] for record in event["Records"]]
    delivered = [
        [group, record["messageId"], int(record["attributes"]["ApproximateReceiveCount"])]
        for group, record in zip(groups, event["Records"], strict=True)
    ]
    with (PLACE / "delivered").open("a") as book:
        book.write(json.dumps(delivered) + "\n")
    answer = _handle(event, context)
    for mark in [PLACE / f"lose-{group}" for group in groups]:
        if mark.exists():
            mark.unlink()
            _die()
    return answer


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


Committer.commit = _commit_or_die  # type: ignore[method-assign]
