"""A document as the rules across fields look at it: whatever is usable, typed; what is not was reported already."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import msgspec

from ductor.model.definition import Compensation, CompensationTarget, Edge, Effects, Step
from ductor.model.enums import EdgeType, OnError, StepType
from ductor.model.json import JSON
from ductor.steps.spec import Catalog
from ductor.validation.document_shape import step_label

Struct = TypeVar("Struct", bound=msgspec.Struct)
Json = dict[str, JSON]


class EdgeAt(msgspec.Struct, frozen=True):
    """An edge with its place in the document. `typed` is false when its type is unknown (then SUCCESS stands in)."""

    field: str
    edge: Edge
    typed: bool


class View:
    """Steps of known type by ref, edges between them, and the rest of the document. Satisfies `steps.spec.Scope`."""

    def __init__(self, document: Json, catalog: Catalog) -> None:
        self.document = document
        self.catalog = catalog
        raw = objects(document.get("steps"))
        labels = [step_label(step, index) for index, step in enumerate(raw)]
        self.refs: dict[str, int] = {}
        for index, label in enumerate(labels):
            self.refs.setdefault(label, index)
        self.raw_steps = raw
        self.labels = labels
        self.steps: tuple[Step | None, ...] = tuple(map(_step, labels, raw))
        self.edges = tuple(_edges(objects(document.get("edges"))))
        self.out: list[list[EdgeAt]] = [[] for _ in raw]
        self.into: list[list[EdgeAt]] = [[] for _ in raw]
        for at in self.edges:
            source, target = self.refs.get(at.edge.source_ref), self.refs.get(at.edge.target_ref)
            if source is not None and target is not None:
                self.out[source].append(at)
                self.into[target].append(at)

    def incoming(self, ref: str) -> Sequence[Edge]:
        return [at.edge for at in self.into[self.refs[ref]]]

    def outgoing(self, ref: str) -> Sequence[Edge]:
        return [at.edge for at in self.out[self.refs[ref]]]

    def type_of(self, ref: str) -> StepType | None:
        index = self.refs.get(ref)
        step = None if index is None else self.steps[index]
        return None if step is None else step.type


def objects(items: JSON) -> list[Json]:
    """The objects of what should be a list of them."""
    return [item for item in items if isinstance(item, dict)] if isinstance(items, list) else []


def _step(label: str, raw: Json) -> Step | None:
    step_type = StepType.parse(_text(raw, "type"))
    if step_type is None:
        return None
    timeout = raw.get("timeout_ms")
    return Step(
        ref=label,
        type=step_type,
        action=_text(raw, "action"),
        args=raw.get("args", {}),
        condition=_text(raw, "condition"),
        connection_ref=_text(raw, "connection_ref"),
        connection_ref_mode=_text(raw, "connection_ref_mode"),
        timeout_ms=timeout if isinstance(timeout, int) else 0,
        on_error=OnError.CONTINUE if raw.get("on_error") == OnError.CONTINUE else OnError.FAIL,
        effects=_converted(raw.get("effects"), Effects),
        compensation=_compensation(raw.get("compensation")),
    )


def _compensation(raw: Any) -> Compensation | None:
    if not isinstance(raw, dict):
        return None
    groups = {name: tuple(map(_target, objects(raw.get(name)))) for name in ("on_failure", "on_cancel", "finally")}
    return Compensation(groups["on_failure"], groups["on_cancel"], groups["finally"])


def _target(raw: Json) -> CompensationTarget:
    return CompensationTarget(
        action=_text(raw, "action"), args=raw.get("args"), connection_ref=_text(raw, "connection_ref")
    )


def _edges(raw: list[Json]) -> list[EdgeAt]:
    out = []
    for index, item in enumerate(raw):
        edge_type = EdgeType.parse(_text(item, "type")) if "type" in item else EdgeType.SUCCESS
        edge = Edge(
            source_ref=_text(item, "source_ref"),
            target_ref=_text(item, "target_ref"),
            type=edge_type or EdgeType.SUCCESS,
            condition=_text(item, "condition"),
        )
        out.append(EdgeAt(f"edges[{index}]", edge, edge_type is not None))
    return out


def _text(raw: Json, name: str) -> str:
    value = raw.get(name, "")
    return value if isinstance(value, str) else ""


def _converted(value: Any, model: type[Struct]) -> Struct | None:
    if value is None:
        return None
    try:
        return msgspec.convert(value, model)
    except msgspec.ValidationError:
        return None
