"""The use cases of workers outside: `polls` hand tasks out, `answers` take in what became of them."""

from __future__ import annotations

from ductor.app.bridge_answers import BridgeAnswers
from ductor.app.bridge_doors import BridgeDoors
from ductor.app.bridge_poll import BridgePolls, Pause


class Bridge:
    """Both halves of the protocol on the same stores. Called from several threads."""

    def __init__(self, doors: BridgeDoors, *, pause: Pause, look_ms: int) -> None:
        self.polls = BridgePolls(doors, pause=pause, look_ms=look_ms)
        self.answers = BridgeAnswers(doors)
