"""Checks a trigger's input against the definition's JSON Schema. Never fetches what a schema refers to."""

from __future__ import annotations

from typing import Final

from jsonschema.exceptions import SchemaError, ValidationError
from referencing.exceptions import Unresolvable

from ductor.app.refusals import invalid
from ductor.model.definition import Definition
from ductor.model.errors import ErrorCode, RefusedError, Violation
from ductor.model.json import JSON
from ductor.validation.input_schema import InputValidator

MAX_VIOLATIONS: Final = 50
MAX_MESSAGE: Final = 300


def check_input(definition: Definition, value: JSON) -> None:
    """Refuse with INVALID_ARGUMENT, one `INPUT_INVALID` per path, at most 50. Takes a bounded time for any input."""
    if definition.input_schema is None:
        return
    violations = _violations(InputValidator(definition.input_schema), value)
    if violations:
        raise RefusedError(ErrorCode.INVALID_ARGUMENT, "the input does not match the input_schema", violations)


def _violations(validator: InputValidator, value: JSON) -> tuple[Violation, ...]:
    found: dict[str, Violation] = {}
    try:
        for error in validator.iter_errors(value):
            field = _path(error)
            found.setdefault(field, Violation(field, "INPUT_INVALID", error.message[:MAX_MESSAGE]))
            if len(found) == MAX_VIOLATIONS:
                break
    except RecursionError as error:
        raise invalid("INPUT_INVALID", "the input is nested too deeply for its schema", "input") from error
    except (Unresolvable, SchemaError) as error:
        raise invalid("INPUT_SCHEMA_INVALID", f"the definition's input_schema is broken: {error}", "input") from error
    return tuple(sorted(found.values(), key=lambda violation: violation.field))


def _path(error: ValidationError) -> str:
    """Where in the input the fault is; a missing or surplus field is named too, so that each has its own path."""
    path = "input"
    for part in error.absolute_path:
        path += f"[{part}]" if isinstance(part, int) else f".{part}"
    if error.validator == "required":
        path += f".{_missing(error)}"
    return path


def _missing(error: ValidationError) -> str:
    # jsonschema raises one error per missing field but names it in the message only: 'email' is a required property.
    required = error.validator_value
    names = [name for name in required if error.message.startswith(repr(name))] if isinstance(required, list) else []
    return str(names[0]) if names else ""
