"""Waits for a call that nothing can interrupt, and yet ends when the attempt is to stop or its time is up."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Final, TypeVar

from ductor.actions.context import ActionContext
from ductor.actions.errors import ActionError, AttemptCancelledError

_POLL_SECONDS: Final = 0.1
_POLLS_PER_BEAT: Final = 10

Answer = TypeVar("Answer")


def watched(
    call: Callable[[], Answer], ctx: ActionContext, timeout_ms: int, *, what: str, late: Callable[[], ActionError]
) -> Answer:
    """What `call` gives, from a thread of its own: nothing can interrupt it, but nobody must wait for it either.

    Beats each second. Raises AttemptCancelledError when the attempt is to stop, `late()` when the time is up; what the
    call does to the world then goes on. `what` names the call in texts.
    """
    done = threading.Event()
    found: list[Answer] = []
    failed: list[Exception] = []

    def run() -> None:
        try:
            found.append(call())
        except Exception as fault:  # noqa: BLE001 - raised again by the thread that waits
            failed.append(fault)
        done.set()

    threading.Thread(target=run, name=what, daemon=True).start()
    polls = 0
    while not done.wait(_POLL_SECONDS):
        polls += 1
        if ctx.cancelled:
            raise AttemptCancelledError(f"cancelled during a {what} call")
        if polls % _POLLS_PER_BEAT == 0:
            ctx.heartbeat()
        if polls * _POLL_SECONDS * 1_000 >= timeout_ms:
            raise late()
    if failed:
        raise failed[0]
    return found[0]
