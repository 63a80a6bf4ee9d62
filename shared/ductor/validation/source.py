"""Reads the text of a definition file, YAML or JSON, strictly: no duplicate keys, no NaN, no surprises of YAML 1.1."""

from __future__ import annotations

import json
import re
from typing import Any, Final

import yaml
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from ductor.model.errors import Violation
from ductor.model.json import JSON
from ductor.validation.document_shape import ENVELOPE_TYPE

MAX_SOURCE_BYTES: Final = 6 * 1_048_576
"""The largest file: what the API would also accept."""

CASE_SUFFIXES: Final = (".test.yaml", ".test.yml")
"""How the names of files with tests of workflows end: they stand beside definitions and hold none."""

_FIELD: Final = "definition"


class _Loader(yaml.SafeLoader):
    """YAML whose plain scalars mean what they mean in JSON: no dates, no `yes`, no base-60 numbers."""

    def construct_mapping(self, node: Node, deep: bool = False) -> dict[Any, Any]:
        if isinstance(node, MappingNode):
            self._check_keys(node)
        return super().construct_mapping(node, deep=deep)  # type: ignore[arg-type]

    def _check_keys(self, node: MappingNode) -> None:
        seen: set[str] = set()
        for key, value in node.value:
            if not isinstance(key, ScalarNode):
                raise yaml.constructor.ConstructorError(None, None, "a field name must be text", key.start_mark)
            if key.tag == "tag:yaml.org,2002:merge" and isinstance(value, SequenceNode):
                # A list of merges doubles at every level, which is how a small file becomes a huge one.
                raise yaml.constructor.ConstructorError(None, None, "merge one mapping, not a list", key.start_mark)
            if key.value in seen:
                raise yaml.constructor.ConstructorError(None, None, f"'{key.value[:60]}' stands twice", key.start_mark)
            seen.add(key.value)


_Loader.yaml_implicit_resolvers = {}
for _tag, _pattern, _first in (
    ("bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
    ("null", r"~|null|Null|NULL|", ("~", "n", "N", "")),
    ("int", r"[-+]?(?:0|[1-9][0-9]{0,400})", "-+0123456789"),
    ("float", r"[-+]?(?:[0-9]+\.[0-9]*|\.[0-9]+|[0-9]+(?=[eE]))(?:[eE][-+]?[0-9]+)?", "-+0123456789."),
    ("merge", r"<<", "<"),
):
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(f"(?:{_pattern})$"), list(_first))


def read_source(text: str, *, as_json: bool = False) -> tuple[JSON, list[Violation]]:
    """The definition body of a file's text, or None and why it cannot be read. Never raises.

    Accepts the YAML envelope `{type: workflow_definition, definition: {…}}` and the bare body of the API.
    """
    if len(text) > MAX_SOURCE_BYTES:
        return None, [Violation("", "DEFINITION_TOO_LARGE", f"the file is larger than {MAX_SOURCE_BYTES} bytes")]
    try:
        raw = _load_json(text) if as_json else _load_yaml(text)
    except RecursionError:
        return None, [Violation("", "FIELD_INVALID", "nests too deeply; flatten it")]
    except (yaml.YAMLError, ValueError) as error:
        return None, [Violation("", "FIELD_INVALID", f"cannot be read: {_told(error)}")]
    return unwrap(raw)


def unwrap(raw: JSON) -> tuple[JSON, list[Violation]]:
    """The body of an envelope; anything else is a body itself."""
    if not isinstance(raw, dict) or not (_FIELD in raw or raw.get("type") == ENVELOPE_TYPE):
        return raw, []
    violations = [
        Violation(str(name)[:60], "FIELD_UNKNOWN", "stands beside `definition`; move it inside or remove it")
        for name in list(raw)[:50]
        if name not in ("type", _FIELD)
    ]
    if raw.get("type") != ENVELOPE_TYPE:
        violations.append(Violation("type", "FIELD_INVALID", f"must be {ENVELOPE_TYPE}"))
    if not isinstance(raw.get(_FIELD), dict):
        violations.append(Violation(_FIELD, "FIELD_REQUIRED", "is required and holds the definition's fields"))
    return raw.get(_FIELD), violations


def _load_yaml(text: str) -> JSON:
    raw = yaml.load(text, _Loader)  # noqa: S506 - a SafeLoader with fewer scalars
    body = raw.get(_FIELD, raw) if isinstance(raw, dict) else None
    edges = body.get("edges") if isinstance(body, dict) else None
    for edge in edges if isinstance(edges, list) else ():
        # `type: true` is how people write the edge of a condition, and YAML makes a boolean of it.
        if isinstance(edge, dict) and isinstance(edge.get("type"), bool):
            edge["type"] = str(edge["type"]).lower()
    return raw


def _load_json(text: str) -> JSON:
    return json.loads(text, object_pairs_hook=_unique, parse_constant=_no_constant)


def _unique(pairs: list[tuple[str, JSON]]) -> dict[str, JSON]:
    out = dict(pairs)
    if len(out) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the field '{twice[:60]}' stands twice in one object")
    return out


def _no_constant(name: str) -> JSON:
    raise ValueError(f"{name} is no JSON number")


def _told(error: Exception) -> str:
    """The parser's sentence with its place in the file: its own text names a buffer that nobody knows."""
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark is not None:
        mark = error.problem_mark
        sentence = ", ".join(part for part in (error.context, error.problem) if part)
        return f"line {mark.line + 1}, column {mark.column + 1}: {sentence}"[:300]
    if isinstance(error, yaml.reader.ReaderError):
        return f"a character that YAML does not allow, at position {error.position}"
    return " ".join(str(error).split())[:300]
