"""What an import could not carry over, or carried over in another way. Collects; decides nothing."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Weight(StrEnum):
    """How much a note matters: `manual` needs a person's hand before the definition does what the file did."""

    MANUAL = "manual"
    NOTE = "note"


@dataclass(frozen=True)
class Note:
    """One remark about one field of one state."""

    weight: Weight
    state: str
    field: str
    message: str

    def line(self) -> str:
        place = f"{self.state}.{self.field}" if self.field else self.state
        return f"{self.weight.value}: {place}: {self.message}"


class Report:
    """The notes of one import, in order."""

    def __init__(self) -> None:
        self.notes: list[Note] = []

    def manual(self, state: str, field: str, message: str) -> None:
        self._add(Note(Weight.MANUAL, state, field, message))

    def note(self, state: str, field: str, message: str) -> None:
        self._add(Note(Weight.NOTE, state, field, message))

    def _add(self, note: Note) -> None:
        if note not in self.notes:
            self.notes.append(note)

    @property
    def complete(self) -> bool:
        """Whether nothing is left to do by hand."""
        return all(note.weight is Weight.NOTE for note in self.notes)
