"""Tasks of the several runs of one batch, sent together: a request to the queue takes ten, and is paid for as one.

What is held was committed and is sent before its intents are acknowledged. Whoever dies in between loses nothing: the
intents come again, and each run sends the stored commands of its last commit.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from ductor.app.dispatch import Sender, send_all
from ductor.ports import Outgoing, UnavailableError


class HeldTasks:
    """The steps queue for the commits of a batch. Sends at once, except within `holding`. Not thread-safe.

    Only for intents that are delivered for the first time. Among those that come again may be one whose commit was not
    followed by its sends; these must go out before the next commit of that run, which overwrites them.
    """

    def __init__(self, queue: Sender) -> None:
        self._queue = queue
        self._held: list[tuple[str, Outgoing]] = []
        self._run_id = ""

    def begin(self) -> None:
        """Forget what an invocation that broke off had held: its intents come again."""
        self._held.clear()

    @contextmanager
    def holding(self, run_id: str) -> Iterator[None]:
        """Keep what is sent within, as tasks of that run, until `flush`."""
        self._run_id = run_id
        try:
            yield
        finally:
            self._run_id = ""

    def send(self, messages: Sequence[Outgoing]) -> tuple[int, ...]:
        if not self._run_id:
            return self._queue.send(messages)
        self._held.extend((self._run_id, message) for message in messages)
        return ()

    @property
    def runs(self) -> frozenset[str]:
        """The runs that something is held of."""
        return frozenset(run_id for run_id, _ in self._held)

    def flush(self) -> frozenset[str]:
        """Send all that is held. The runs whose intents must come again, because something was not accepted.

        Then that is all of them: what was accepted all the same is sent twice, which attempt rows make harmless, and
        a task that the queue never takes is told to its run when the run is alone with it.
        """
        held, self._held = self._held, []
        try:
            send_all(self._queue, [message for _, message in held])
        except (UnavailableError, ValueError):
            return frozenset(run_id for run_id, _ in held)
        return frozenset()
