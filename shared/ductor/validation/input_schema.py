"""JSON Schema (2020-12) of a definition's input: checked at publish, applied at trigger, in bounded time and offline.

Patterns are matched by RE2 in linear time and references stay inside the schema, so no schema and no input can hang.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

import re2  # type: ignore[import-untyped]
from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError
from jsonschema.validators import extend
from referencing import Registry
from referencing.exceptions import Unresolvable

from ductor.model.errors import Violation
from ductor.model.json import JSON

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
MAX_SCHEMA_BYTES: Final = 262_144
MAX_LOOKUPS: Final = 20_000
"""References followed per validation: schemas can refer to themselves twice at every level."""
MAX_PROBLEMS: Final = 100

_CODE: Final = "INPUT_SCHEMA_INVALID"
_UNEVALUATED: Final = frozenset({"unevaluatedProperties", "unevaluatedItems"})
_UNBOUNDED_WITH: Final = frozenset({"$ref", "$dynamicRef", "patternProperties"})
"""What the library's own search for unevaluated parts follows without a bound."""
_PROBES: Final[tuple[JSON, ...]] = (None, True, 0, "", [], {}, [None], {"": None})


class _TooMuchError(RecursionError):
    """A validation followed too many references."""


def check_input_schema(schema: JSON) -> Iterator[Violation]:
    """What is wrong with an `input_schema`; every fault found. Assumes plain JSON of bounded depth."""
    if not isinstance(schema, dict):
        yield Violation("input_schema", _CODE, "must be an object")
        return
    if len(json.dumps(schema)) > MAX_SCHEMA_BYTES:
        yield Violation("input_schema", _CODE, f"must be at most {MAX_SCHEMA_BYTES} bytes of JSON")
        return
    own = list(_unsafe(schema, "input_schema"))
    yield from own
    if not own:
        yield from _meta_faults(schema)


class InputValidator:
    """Applies a checked schema to inputs; may be kept and shared between threads.

    Linear in patterns, bounded in references, and it fetches nothing.
    """

    def __init__(self, schema: JSON) -> None:
        self._schema = schema

    def iter_errors(self, value: JSON) -> Iterator[ValidationError]:
        """jsonschema's errors, lazily. Raises RecursionError for an input that the schema nests or refers too far."""
        errors: Iterator[ValidationError] = _bounded(self._schema).iter_errors(value)
        return errors


def _meta_faults(schema: dict[str, JSON]) -> Iterator[Violation]:
    errors = sorted(Draft202012Validator(Draft202012Validator.META_SCHEMA).iter_errors(schema), key=_path)
    for error in errors[:MAX_PROBLEMS]:
        yield Violation(_path(error), _CODE, error.message[:300])
    if errors:
        return
    try:
        for probe in _PROBES:
            list(InputValidator(schema).iter_errors(probe))
    except RecursionError:
        yield Violation("input_schema", _CODE, "refers to itself without end; let a property or an item stand between")
    except Unresolvable as error:
        yield Violation("input_schema", _CODE, f"has a $ref that leads nowhere: {str(error)[:200]}")


def _unsafe(node: JSON, path: str) -> Iterator[Violation]:
    """References that leave the schema, and patterns that RE2 does not know."""
    stack: list[tuple[JSON, str]] = [(node, path)]
    used: set[str] = set()
    while stack:
        value, at = stack.pop()
        if isinstance(value, list):
            stack.extend((item, f"{at}[{index}]") for index, item in enumerate(value))
        if not isinstance(value, dict):
            continue
        yield from _unsafe_keywords(value, at)
        used.update(value.keys() & _UNEVALUATED, value.keys() & _UNBOUNDED_WITH)
        for name, item in value.items():
            if name not in ("const", "enum", "default", "examples"):
                stack.append((item, f"{at}.{name[:60]}"))

    if used & _UNEVALUATED and used & _UNBOUNDED_WITH:
        both = f"{min(used & _UNEVALUATED)} and {min(used & _UNBOUNDED_WITH)}"
        yield Violation(path, _CODE, f"cannot use {both} together; use additionalProperties or write the parts out")


def _unsafe_keywords(schema: dict[str, JSON], at: str) -> Iterator[Violation]:
    for name in ("$ref", "$dynamicRef"):
        if isinstance(schema.get(name), str) and not schema[name].startswith("#"):
            yield Violation(f"{at}.{name}", _CODE, "must stay inside this schema: write #/$defs/…")
    if isinstance(schema.get("$id"), str):
        yield Violation(f"{at}.$id", _CODE, "has no use here and would move references elsewhere; remove it")
    dialect = schema.get("$schema")
    if isinstance(dialect, str) and dialect.rstrip("#") != DIALECT:
        yield Violation(f"{at}.$schema", _CODE, f"must be {DIALECT} or absent")
    patterns = schema.get("patternProperties")
    if isinstance(schema.get("pattern"), str) and (problem := _pattern_problem(schema["pattern"])):
        yield Violation(f"{at}.pattern", _CODE, problem)
    for pattern in patterns if isinstance(patterns, dict) else ():
        if problem := _pattern_problem(pattern):
            yield Violation(f"{at}.patternProperties", _CODE, problem)


def _pattern_problem(pattern: str) -> str | None:
    try:
        _compiled(pattern)
    except re2.error as error:
        reason = error.args[0] if error.args else b""
        text = reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(reason)
        return f"'{pattern[:60]}' is not a pattern that runs in linear time (RE2): {text[:200]}"
    return None


_OPTIONS: Final = re2.Options()
_OPTIONS.log_errors = False


def _compiled(pattern: str) -> Any:
    return re2.compile(pattern, _OPTIONS)


def _pattern(validator: Any, pattern: str, value: JSON, schema: JSON) -> Iterator[ValidationError]:
    del validator, schema
    if isinstance(value, str) and not _compiled(pattern).search(value):
        yield ValidationError(f"{value[:100]!r} does not match {pattern!r}")


def _pattern_properties(validator: Any, patterns: JSON, value: JSON, schema: JSON) -> Iterator[ValidationError]:
    del schema
    if not isinstance(value, dict):
        return
    for pattern, below in patterns.items():
        compiled = _compiled(pattern)
        for name, item in value.items():
            if compiled.search(name):
                yield from validator.descend(item, below, path=name, schema_path=pattern)


def _additional(validator: Any, below: JSON, value: JSON, schema: JSON) -> Iterator[ValidationError]:
    if not isinstance(value, dict):
        return
    known = schema.get("properties", {})
    patterns = [_compiled(pattern) for pattern in schema.get("patternProperties", {})]
    for name, item in value.items():
        if name in known or any(pattern.search(name) for pattern in patterns):
            continue
        if below is False:
            yield ValidationError(f"{name[:100]!r} is not a known property")
        else:
            yield from validator.descend(item, below, path=name)


def _unique(validator: Any, wanted: JSON, value: JSON, schema: JSON) -> Iterator[ValidationError]:
    """Linear; the library compares every pair."""
    del validator, schema
    if wanted and isinstance(value, list) and len({_key(item) for item in value}) != len(value):
        yield ValidationError("holds an item twice")


def _key(value: JSON) -> str:
    return json.dumps(_integral(value), sort_keys=True)


def _integral(value: JSON) -> JSON:
    """1.0 and 1 are one number in JSON Schema."""
    if isinstance(value, dict):
        return {name: _integral(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_integral(item) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _bounded(schema: JSON) -> Any:
    """A validator for one use: it counts the references that it follows."""
    left = MAX_LOOKUPS
    original = Draft202012Validator.VALIDATORS

    def counted(keyword: str) -> Any:
        def follow(validator: Any, ref: JSON, value: JSON, below: JSON) -> Iterator[ValidationError]:
            nonlocal left
            left -= 1
            if left < 0:
                raise _TooMuchError
            yield from original[keyword](validator, ref, value, below)

        return follow

    keywords = {
        "pattern": _pattern,
        "patternProperties": _pattern_properties,
        "additionalProperties": _additional,
        "uniqueItems": _unique,
        "$ref": counted("$ref"),
        "$dynamicRef": counted("$dynamicRef"),
    }
    return extend(Draft202012Validator, keywords)(  # type: ignore[no-untyped-call]
        schema, registry=Registry()
    )


def _path(error: ValidationError) -> str:
    path = "input_schema"
    for part in list(error.absolute_path)[:20]:
        path += f"[{part}]" if isinstance(part, int) else f".{str(part)[:60]}"
    return path
