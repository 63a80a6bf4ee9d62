"""Structured answers of models: what is asked of the model, and whether its answer fits. Never repeats an answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from ductor.actions.exact import NotExactError, exact
from ductor.model.errors import clip
from ductor.model.json import JSON, decode, encode

if TYPE_CHECKING:
    from jsonschema.exceptions import ValidationError

MAX_FAULTS: Final = 10
_MAX_MESSAGE: Final = 300
_FENCE: Final = "```"


class Fault(msgspec.Struct, frozen=True):
    """Where the answer does not fit. `rule` may be shown to anybody; `message` may hold parts of the answer."""

    rule: str
    message: str


class Checked(msgspec.Struct, frozen=True):
    """The value of an answer that fits, or the faults of one that does not."""

    value: JSON = None
    faults: tuple[Fault, ...] = ()


def instruction(schema: dict[str, JSON]) -> str:
    """What the model is told."""
    return (
        "Answer with one JSON value that fits this JSON Schema, and with nothing else: no explanation, no code fence.\n"
        + encode(schema).decode()
    )


def repair_request(faults: tuple[Fault, ...]) -> str:
    """What the model is told about an answer that does not fit."""
    listed = "\n".join(f"- {fault.message}" for fault in faults)
    return f"That answer does not fit the JSON Schema:\n{listed}\nAnswer again, with the corrected JSON value only."


def check(text: str, schema: dict[str, JSON]) -> Checked:
    """Whether `text` is a JSON value that fits. A code fence around it is forgiven."""
    try:
        value = exact(decode(_bare(text)), "answer")[0]
    except (msgspec.DecodeError, NotExactError, UnicodeError, RecursionError):
        return Checked(faults=(Fault("answer: is not JSON", "the answer is not a JSON value"),))
    # Loaded by the first structured answer only: a function starts without it.
    from jsonschema.exceptions import SchemaError
    from referencing.exceptions import Unresolvable

    try:
        found = _faults(schema, value)
    except RecursionError:
        return Checked(faults=(Fault("answer: is nested too deeply", "the answer is nested too deeply"),))
    except (Unresolvable, SchemaError):
        return Checked(faults=(Fault("output_schema: is broken", "the schema is broken"),))
    return Checked(faults=found) if found else Checked(value)


def _faults(schema: dict[str, JSON], value: JSON) -> tuple[Fault, ...]:
    from ductor.validation.input_schema import InputValidator

    faults: list[Fault] = []
    for error in InputValidator(schema).iter_errors(value):
        path = _path(error)
        rule = f"{path}: breaks `{error.validator}`" if error.validator else f"{path}: does not fit"
        faults.append(Fault(clip(rule, _MAX_MESSAGE), clip(f"{path}: {error.message}", _MAX_MESSAGE)))
        if len(faults) == MAX_FAULTS:
            break
    return tuple(faults)


def _path(error: ValidationError) -> str:
    path = "answer"
    for part in list(error.absolute_path)[:20]:
        path += f"[{part}]" if isinstance(part, int) else f".{str(part)[:60]}"
    return path


def _bare(text: str) -> str:
    stripped = text.strip()
    if not stripped.startswith(_FENCE) or not stripped.endswith(_FENCE) or len(stripped) < 2 * len(_FENCE):
        return stripped
    _, _, inner = stripped.removesuffix(_FENCE).partition("\n")
    return inner
