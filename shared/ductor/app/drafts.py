"""Edits of a draft document: top-level fields and graph operations, in order, all or nothing. Pure."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Any, Final

from ductor.app.refusals import invalid
from ductor.app.renaming import rename_everywhere
from ductor.model.json import JSON

MAX_OPERATIONS: Final = 6_000
_NOT_DOCUMENT: Final = frozenset({"expected_draft_revision", "operations"})

Document = dict[str, Any]
Operation = Callable[[Document, Any, str], None]


def edited(document: Mapping[str, JSON], changes: Mapping[str, JSON]) -> Document:
    """A changed copy. A top-level field of null is removed. Refuses with the path of the operation that cannot be.

    Whether the outcome is a valid definition is for the validator to say, not for this function.
    """
    result: Document = copy.deepcopy(dict(document))
    for field, value in changes.items():
        if field in _NOT_DOCUMENT:
            continue
        if value is None:
            result.pop(field, None)
        else:
            result[field] = copy.deepcopy(value)
    operations = changes.get("operations")
    if operations is None:
        return result
    if not isinstance(operations, list) or len(operations) > MAX_OPERATIONS:
        raise invalid("FIELD_INVALID", f"operations is a list of at most {MAX_OPERATIONS} objects", "operations")
    for place, operation in enumerate(operations):
        _apply(result, operation, f"operations[{place}]")
    return result


def _apply(document: Document, operation: JSON, path: str) -> None:
    if not isinstance(operation, dict) or len(operation) != 1:
        raise invalid("OPERATION_INVALID", 'an operation is an object with one key, like {"add_step": {…}}', path)
    ((name, argument),) = operation.items()
    apply = _OPERATIONS.get(name)
    if apply is None:
        raise invalid("OPERATION_UNKNOWN", f"use one of {', '.join(_OPERATIONS)}", f"{path}.{name}")
    for field in ("steps", "edges"):
        if not isinstance(document.setdefault(field, []), list):
            raise invalid("FIELD_INVALID", "must be a list", field)
    apply(document, copy.deepcopy(argument), f"{path}.{name}")


def _object(argument: JSON, path: str) -> Document:
    if not isinstance(argument, dict):
        raise invalid("OPERATION_INVALID", "must be an object", path)
    return argument


def _text(argument: Document, field: str, path: str) -> str:
    value = argument.get(field)
    if not isinstance(value, str) or not value:
        raise invalid("FIELD_REQUIRED", "must be a non-empty text", f"{path}.{field}")
    return value


def _ref(argument: Document, path: str) -> str:
    """The ref an operation is about; `id` is its alias."""
    if "ref" not in argument and "id" in argument:
        argument["ref"] = argument.pop("id")
    return _text(argument, "ref", path)


def _place_of(document: Document, ref: str) -> int | None:
    for place, step in enumerate(document["steps"]):
        if isinstance(step, dict) and step.get("ref", step.get("id")) == ref:
            return place
    return None


def _existing(document: Document, ref: str, path: str) -> int:
    place = _place_of(document, ref)
    if place is None:
        raise invalid("STEP_UNKNOWN", f"the draft has no step {ref!r}", f"{path}.ref")
    return place


def _add_step(document: Document, argument: JSON, path: str) -> None:
    step = _object(argument, path)
    ref = _ref(step, path)
    if _place_of(document, ref) is not None:
        raise invalid("STEP_REF_DUPLICATE", f"the draft has a step {ref!r} already", f"{path}.ref")
    document["steps"].append(step)


def _update_step(document: Document, argument: JSON, path: str) -> None:
    changed = _object(argument, path)
    step = document["steps"][_existing(document, _ref(changed, path), path)]
    for field, value in changed.items():
        if value is None:
            step.pop(field, None)
        else:
            step[field] = value


def _remove_step(document: Document, argument: JSON, path: str) -> None:
    ref = argument if isinstance(argument, str) else _ref(_object(argument, path), path)
    del document["steps"][_existing(document, ref, path)]
    document["edges"] = [edge for edge in document["edges"] if ref not in _ends(edge)]


def _rename_step(document: Document, argument: JSON, path: str) -> None:
    wanted = _object(argument, path)
    ref, new_ref = _ref(wanted, path), _text(wanted, "new_ref", path)
    place = _existing(document, ref, path)
    if new_ref != ref and _place_of(document, new_ref) is not None:
        raise invalid("STEP_REF_DUPLICATE", f"the draft has a step {new_ref!r} already", f"{path}.new_ref")
    step = document["steps"][place]
    step.pop("id", None)
    step["ref"] = new_ref
    rename_everywhere(document, ref, new_ref)


def _ends(edge: JSON) -> tuple[JSON, JSON]:
    return (edge.get("source_ref"), edge.get("target_ref")) if isinstance(edge, dict) else (None, None)


def _edge_type(edge: Document) -> str:
    # YAML reads a bare `true` as a boolean.
    return str(edge.get("type", "success")).upper().removeprefix("EDGE_TYPE_")


def _edges_between(document: Document, argument: Document, path: str) -> list[int]:
    ends = (_text(argument, "source_ref", path), _text(argument, "target_ref", path))
    found = [place for place, edge in enumerate(document["edges"]) if _ends(edge) == ends]
    if not found:
        raise invalid("EDGE_UNKNOWN", f"the draft has no edge from {ends[0]!r} to {ends[1]!r}", path)
    return found


def _one_of_type(document: Document, places: list[int], argument: Document, path: str) -> int:
    wanted = _edge_type(argument)
    matching = [place for place in places if _edge_type(document["edges"][place]) == wanted]
    if "type" not in argument or len(matching) != 1:
        kinds = ", ".join(_edge_type(document["edges"][place]) for place in places)
        raise invalid("EDGE_AMBIGUOUS", f"name the type of the edge that is meant: {kinds}", f"{path}.type")
    return matching[0]


def _add_edge(document: Document, argument: JSON, path: str) -> None:
    edge = _object(argument, path)
    _text(edge, "source_ref", path)
    _text(edge, "target_ref", path)
    document["edges"].append(edge)


def _update_edge(document: Document, argument: JSON, path: str) -> None:
    """`type` is the new type of the only edge between two steps; of several it names one, and `new_type` changes it."""
    changed = _object(argument, path)
    places = _edges_between(document, changed, path)
    new_type = changed.pop("new_type", None)
    place = places[0] if len(places) == 1 else _one_of_type(document, places, changed, path)
    edge = document["edges"][place]
    for field, value in changed.items():
        if value is None:
            edge.pop(field, None)
        else:
            edge[field] = value
    if new_type is not None:
        edge["type"] = new_type


def _remove_edge(document: Document, argument: JSON, path: str) -> None:
    wanted = _object(argument, path)
    places = _edges_between(document, wanted, path)
    plain = len(places) == 1 and "type" not in wanted
    del document["edges"][places[0] if plain else _one_of_type(document, places, wanted, path)]


def _setter(field: str, kind: type) -> Operation:
    def apply(document: Document, argument: JSON, path: str) -> None:
        if argument is None:
            document.pop(field, None)
        elif isinstance(argument, kind):
            document[field] = argument
        else:
            raise invalid("OPERATION_INVALID", f"must be {'a list' if kind is list else 'an object'} or null", path)

    return apply


_OPERATIONS: Final[dict[str, Operation]] = {
    "add_step": _add_step,
    "update_step": _update_step,
    "rename_step": _rename_step,
    "remove_step": _remove_step,
    "add_edge": _add_edge,
    "update_edge": _update_edge,
    "remove_edge": _remove_edge,
    "set_schedule": _setter("schedule", dict),
    "set_triggers": _setter("triggers", list),
    "set_checkpoints": _setter("checkpoints", list),
    "set_variables": _setter("variables", dict),
}
