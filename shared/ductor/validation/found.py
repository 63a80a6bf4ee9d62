"""Collects the faults of one document. Bounded, so that no document can make its own answer too large."""

from __future__ import annotations

from typing import Final

from ductor.model.errors import Severity, Violation

MAX_VIOLATIONS: Final = 1_000
"""Faults listed per document; further ones show after these are repaired."""

MAX_SUGGESTIONS: Final = 50
"""How often a nearest name is looked for; each look compares against every known name."""


class Found:
    """`broken` refuses even the save of a draft; `faults` only publication."""

    __slots__ = ("broken", "faults", "suggestions")

    def __init__(self) -> None:
        self.broken: list[Violation] = []
        self.faults: list[Violation] = []
        self.suggestions = 0

    @property
    def full(self) -> bool:
        return len(self.broken) + len(self.faults) >= MAX_VIOLATIONS

    def breaks(self, field: str, code: str, message: str) -> None:
        """A wrong JSON type, an unknown field: the document cannot even be kept."""
        if not self.full:
            self.broken.append(Violation(field, code, message))

    def fault(self, field: str, code: str, message: str, severity: Severity = Severity.ERROR) -> None:
        """The document can be kept, but not published."""
        if not self.full:
            self.faults.append(Violation(field, code, message, severity))

    def add(self, violation: Violation) -> None:
        if not self.full:
            self.faults.append(violation)

    def may_suggest(self) -> bool:
        self.suggestions += 1
        return self.suggestions <= MAX_SUGGESTIONS
