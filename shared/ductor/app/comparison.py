"""What differs between two documents: steps by ref, edges by their ends and type, everything else by field. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Any, Final

import msgspec

from ductor.model.json import JSON

Document = Mapping[str, Any]

_GRAPH: Final = frozenset({"steps", "edges"})


class Change(StrEnum):
    """What became of something on the way from the earlier document to the later one."""

    ADDED = "added"
    REMOVED = "removed"
    CHANGED = "changed"


class FieldChange(msgspec.Struct, frozen=True):
    """One field, named by its path (`args.duration`). `before` is None when it was added, `after` when removed."""

    field: str
    change: Change
    before: JSON
    after: JSON


class StepChange(msgspec.Struct, frozen=True):
    """A step that is in both documents, and what changed in it."""

    ref: str
    fields: tuple[FieldChange, ...]


class EdgeChange(msgspec.Struct, frozen=True):
    """An edge that is in both documents, and what changed in it. Another type or end makes it another edge."""

    source_ref: str
    target_ref: str
    type: str
    fields: tuple[FieldChange, ...]


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that differs; the order of steps and edges does not count."""

    fields: tuple[FieldChange, ...]
    steps_added: tuple[JSON, ...]
    steps_removed: tuple[JSON, ...]
    steps_changed: tuple[StepChange, ...]
    edges_added: tuple[JSON, ...]
    edges_removed: tuple[JSON, ...]
    edges_changed: tuple[EdgeChange, ...]

    @property
    def identical(self) -> bool:
        return not any(getattr(self, name) for name in self.__struct_fields__)


def compare(before: Document, after: Document) -> Comparison:
    """What must be done to `before` to get `after`. Both have one spelling of types (`to_wire`)."""
    old_steps, new_steps = _by_key(before, "steps"), _by_key(after, "steps")
    old_edges, new_edges = _by_key(before, "edges"), _by_key(after, "edges")
    steps = ((key[0], tuple(_changes(old_steps[key], new_steps[key]))) for key in new_steps if key in old_steps)
    edges = ((key, tuple(_changes(old_edges[key], new_edges[key]))) for key in new_edges if key in old_edges)
    return Comparison(
        fields=tuple(_changes(_outside(before), _outside(after))),
        steps_added=_only(new_steps, old_steps),
        steps_removed=_only(old_steps, new_steps),
        steps_changed=tuple(StepChange(ref, fields) for ref, fields in steps if fields),
        edges_added=_only(new_edges, old_edges),
        edges_removed=_only(old_edges, new_edges),
        edges_changed=tuple(EdgeChange(key[0], key[1], key[2], fields) for key, fields in edges if fields),
    )


def _outside(document: Document) -> dict[str, JSON]:
    return {name: value for name, value in document.items() if name not in _GRAPH}


def _by_key(document: Document, name: str) -> dict[tuple[str, ...], Document]:
    """Steps or edges by what makes them the same; of two alike (a draft may hold them) the second is another one."""
    found: dict[tuple[str, ...], Document] = {}
    items = document.get(name)
    names = ("ref",) if name == "steps" else ("source_ref", "target_ref", "type")
    for item in items if isinstance(items, list) else ():
        if isinstance(item, dict):
            key = tuple(str(item.get(part, "")) for part in names)
            while key in found:
                key = (*key, "again")
            found[key] = item
    return found


def _only(these: Mapping[tuple[str, ...], JSON], those: Mapping[tuple[str, ...], JSON]) -> tuple[JSON, ...]:
    return tuple(item for key, item in these.items() if key not in those)


def _changes(before: Document, after: Document, path: str = "") -> Iterator[FieldChange]:
    """Leaves that differ. Objects are compared by field, lists as a whole."""
    for name in (*before, *(name for name in after if name not in before)):
        at = f"{path}.{name}" if path else name
        if name not in after:
            yield FieldChange(at, Change.REMOVED, before[name], None)
        elif name not in before:
            yield FieldChange(at, Change.ADDED, None, after[name])
        elif isinstance(before[name], dict) and isinstance(after[name], dict):
            yield from _changes(before[name], after[name], at)
        elif _differs(before[name], after[name]):
            yield FieldChange(at, Change.CHANGED, before[name], after[name])


def _differs(before: JSON, after: JSON) -> bool:
    """In JSON true is not 1, which Python would call equal."""
    return before != after or msgspec.json.encode(before) != msgspec.json.encode(after)
