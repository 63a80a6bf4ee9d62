"""Rules of a Choice state as CEL conditions."""

from __future__ import annotations

import json
import re
from typing import Any, Final

from ductor.cli.asl.values import Data, NotCarriedError, json_path, literal

_COMPARE: Final = {
    "Equals": "==",
    "LessThan": "<",
    "GreaterThan": ">",
    "LessThanEquals": "<=",
    "GreaterThanEquals": ">=",
}
_TYPED: Final = re.compile(
    r"(String|Numeric|Boolean|Timestamp)(Equals|LessThan|GreaterThan|LessThanEquals|GreaterThanEquals)(Path)?"
)
_KINDS: Final = {"IsString": ("string",), "IsBoolean": ("bool",), "IsNumeric": ("int", "double")}


def condition(rule: dict[str, Any], data: Data) -> str:
    """CEL for one rule. Raises NotCarriedError."""
    if "And" in rule or "Or" in rule:
        name, operator = ("And", " && ") if "And" in rule else ("Or", " || ")
        return f"({operator.join(condition(part, data) for part in rule[name])})"
    if "Not" in rule:
        return f"!({condition(rule['Not'], data)})"
    variable = json_path(str(rule.get("Variable", "")), data)
    for name, operand in rule.items():
        if (typed := _TYPED.fullmatch(name)) is not None:
            return _compared(variable, typed, operand, data)
        if name in _KINDS:
            found = " || ".join(f"type({variable}) == {kind}" for kind in _KINDS[name])
            return _wanted(f"({found})", operand)
        if name == "IsNull":
            return _wanted(f"({variable} == null)", operand)
        if name == "IsPresent":
            return _wanted(_present(variable), operand)
        if name == "StringMatches":
            return f"{variable}.matches({json.dumps(_pattern(str(operand)))})"
    raise NotCarriedError(f"no comparison that is known: {', '.join(rule)}")


def _compared(variable: str, typed: re.Match[str], operand: Any, data: Data) -> str:
    kind, operator, by_path = typed.groups()
    other = json_path(str(operand), data) if by_path else literal(operand)
    if kind == "Timestamp":
        variable, other = f"timestamp({variable})", f"timestamp({other})"
    return f"{variable} {_COMPARE[operator]} {other}"


def _wanted(cel: str, operand: Any) -> str:
    return cel if operand is True else f"!{cel}"


def _present(variable: str) -> str:
    if not re.search(r"\.[A-Za-z_]\w*$", variable):
        raise NotCarriedError("IsPresent of something that is no field")
    return f"has({variable})"


def _pattern(glob: str) -> str:
    pieces = re.split(r"(?<!\\)\*", glob)
    return f"^{'.*'.join(re.escape(piece.replace(chr(92) + '*', '*')) for piece in pieces)}$"
