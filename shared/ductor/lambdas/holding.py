"""What the several runs of one batch ask for outside, sent together: a request takes ten, and is paid for as one.

That are their tasks, and the events that tell of them. What is held was committed and is sent before its intents are
acknowledged. Whoever dies in between loses nothing: the intents come again, and each run sends the stored commands of
its last commit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

from ductor.app.dispatch import Sender, send_all
from ductor.app.lifecycle import tellings
from ductor.engine.graph import Graph
from ductor.model.command import Command
from ductor.model.intent import Intent
from ductor.model.run import RunState
from ductor.ports import Outgoing, Telling, UnavailableError

_T = TypeVar("_T")


class HeldSends:
    """The steps queue, and the handler of `Announce`, for the commits of a batch. Not thread-safe.

    They send at once, except within `holding`. `tell` puts events on the bus (`Lifecycle.tell`).

    Only for intents that are delivered for the first time. Among those that come again may be one whose commit was not
    followed by its sends; these must go out before the next commit of that run, which overwrites them.
    """

    def __init__(self, queue: Sender, tell: Callable[[Sequence[Telling]], None]) -> None:
        self._queue = queue
        self._tell = tell
        self._held: list[tuple[str, Outgoing]] = []
        self._news: list[tuple[str, Telling]] = []
        self._run_id = ""

    def begin(self) -> None:
        """Forget what an invocation that broke off had held: its intents come again."""
        self._held.clear()
        self._news.clear()

    @contextmanager
    def holding(self, run_id: str) -> Iterator[None]:
        """Keep what is sent within, as that run's, until `flush`."""
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

    def announce(self, _graph: Graph, state: RunState, command: Command, _mark: str) -> Iterable[Intent]:
        """Tell what a commit says has happened, with what the other runs of the batch have to tell."""
        told = tellings(state, command)
        if self._run_id:
            self._news.extend((self._run_id, one) for one in told)
        else:
            self._tell(told)
        return ()

    @property
    def runs(self) -> frozenset[str]:
        """The runs that something is held of."""
        return frozenset(run_id for run_id, _ in (*self._held, *self._news))

    def flush(self) -> frozenset[str]:
        """Send all that is held. The runs whose intents must come again, because something was not accepted.

        Then that is all of them: what was accepted all the same is sent twice, which attempt rows make harmless, and
        a task that the queue never takes is told to its run when the run is alone with it.
        """
        tasks, self._held = self._held, []
        news, self._news = self._news, []
        return _unsent(tasks, lambda messages: send_all(self._queue, messages)) | _unsent(news, self._tell)


def _unsent(held: Sequence[tuple[str, _T]], send: Callable[[Sequence[_T]], None]) -> frozenset[str]:
    """Send what is held; the runs of which something was, if that fails."""
    if not held:
        return frozenset()
    try:
        send([one for _, one in held])
    except (UnavailableError, ValueError):
        return frozenset(run_id for run_id, _ in held)
    return frozenset()
