"""The unit of a backend that cannot group: every write, send and timer stands on its own."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext


class SeparateUnit:
    """`ports.Unit` that groups nothing. What a failed batch had done until then stays done."""

    def batch(self) -> AbstractContextManager[None]:
        return nullcontext()

    def part(self) -> AbstractContextManager[None]:
        return nullcontext()
