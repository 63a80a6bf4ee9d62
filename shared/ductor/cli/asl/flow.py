"""The graph of an import while it grows: steps, edges, and the data that flows along each way between states."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, Final

from ductor.cli.asl.report import Report
from ductor.cli.asl.values import Data, NotCarriedError

Document = dict[str, Any]

_ODD: Final = re.compile(r"[^A-Za-z0-9_-]+")
_MAX_REF: Final = 56


@dataclass(frozen=True)
class Way:
    """One way out of a step: the edge, what it leads to (`target` None = the end), and the data that flows along."""

    source: str
    data: Data
    target: str | None = None
    kind: str = "success"
    condition: str = ""

    @property
    def proof(self) -> str:
        """CEL that is true when this way was taken."""
        status = f'STEPS["{self.source}"].status'
        taken = f'{status} == "completed"' if self.kind not in ("error", "timeout") else f'{status} != "completed"'
        if self.kind in ("true", "false"):
            taken += f' && STEPS["{self.source}"].output.value == {self.kind}'
        return f"{taken} && {self.condition}" if self.condition else taken


@dataclass(frozen=True)
class Piece:
    """What a state became: the steps that edges lead to, and the ways out of it."""

    entries: tuple[str, ...]
    ways: tuple[Way, ...]


@dataclass
class Flow:
    """Everything imported so far."""

    report: Report
    steps: list[Document] = field(default_factory=list)
    edges: list[Document] = field(default_factory=list)
    _taken: set[str] = field(default_factory=set)

    def ref(self, name: str) -> str:
        """A free ref for a state's name."""
        base = _ODD.sub("_", name).strip("_-")[:_MAX_REF] or "state"
        base = base if base[0].isalpha() else f"s_{base}"
        found, number = base, 2
        while found.casefold() in self._taken:
            found, number = f"{base}_{number}", number + 1
        self._taken.add(found.casefold())
        return found

    def add(self, ref: str, kind: str, args: Document, **fields: Any) -> None:
        """A step. Fields that are None or empty are left out."""
        given = {name: value for name, value in fields.items() if value not in (None, "", [], {})}
        self.steps.append({"ref": ref, "type": kind, **given, **({"args": args} if args else {})})

    def connect(self, way: Way, target: str) -> None:
        """An edge; a second one of the same ends and type is joined to the first with `||`."""
        edge = {"source_ref": way.source, "target_ref": target, "type": way.kind}
        for known in self.edges:
            if all(known[name] == value for name, value in edge.items()):
                if known.get("condition") and way.condition:
                    known["condition"] = f"({known['condition']}) || ({way.condition})"
                else:
                    known.pop("condition", None)
                return
        self.edges.append({**edge, "condition": way.condition} if way.condition else edge)

    def merged(self, ways: list[Way], state: str) -> Data:
        """The data at a point that several ways lead to: that of the way that was taken, later ones first."""
        distinct: list[Way] = []
        for way in ways:
            if all(known.data != way.data for known in distinct):
                distinct.append(way)
        first, *others = distinct
        data = first.data
        for way in others:
            try:
                data = _either(way, data)
            except NotCarriedError as why:
                self.report.manual(state, "", f"several ways lead here with different data: {why}")
        return data


def is_list_of_objects(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, dict) for item in value)


def listed(state: Document, field: str) -> list[Document]:
    """The objects of a field that should hold a list of them."""
    items = state.get(field)
    return [item for item in items if isinstance(item, dict)] if isinstance(items, list) else []


def target_of(state: Document, field: str = "Next") -> str | None:
    """The state that a field names."""
    value = state.get(field)
    return value if isinstance(value, str) else None


def _either(way: Way, other: Data) -> Data:
    def pick(mine: str, theirs: str) -> str:
        return mine if mine == theirs else f"({way.proof} ? {mine} : {theirs})"

    paths = [*way.data.over, *(path for path in other.over if path not in way.data.over)]
    names = [name for name in way.data.variables if name in other.variables]
    return Data(
        base=pick(way.data.base, other.base),
        over={path: pick(way.data.at(path), other.at(path)) for path in paths},
        variables={name: pick(way.data.variables[name], other.variables[name]) for name in names},
    )
