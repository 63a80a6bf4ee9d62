"""A message that was delivered again while its attempt still runs: the first invocation's receipt is worth nothing."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from ductor.lambdas.steps import InvocationQueue
from ductor.ports import Message, Outgoing, UnavailableError


class Forgetful:
    """A steps queue that refuses every receipt."""

    def __init__(self, fault: Exception) -> None:
        self._fault = fault

    def send(self, messages: Sequence[Outgoing]) -> tuple[int, ...]:
        return ()

    def retry(self, receipts: Sequence[str], *, delay_ms: int) -> None:
        raise self._fault

    def bury(self, messages: Sequence[Message], reason: str) -> None:
        """Nothing is buried here."""


def holding(fault: Exception) -> InvocationQueue:
    queue = InvocationQueue(Forgetful(fault))
    queue.begin([Message("m-1", b"{}", "", "receipt", 1, 0)])
    return queue


def test_a_sign_of_life_does_not_fail_for_it() -> None:
    queue = holding(ValueError("no receive returned this receipt"))
    queue.retry(["receipt"], delay_ms=30_000)
    queue.hand_back(31_000)
    assert queue.left() == ["m-1"]


def test_a_queue_that_is_away_is_told() -> None:
    with pytest.raises(UnavailableError):
        holding(UnavailableError("away")).retry(["receipt"], delay_ms=30_000)
