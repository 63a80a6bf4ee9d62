"""The C++ runtime held against an independent implementation of CEL: the same verdicts and the same values."""

from __future__ import annotations

from typing import Any

import celpy
import pytest
from celpy.adapter import CELJSONEncoder, json_to_cel
from celpy.evaluation import CELEvalError

from ductor.expressions import ExpressionError, compile_cel
from ductor.expressions.analysis import analyse
from ductor.model.json import decode

BINDINGS: dict[str, Any] = {
    "TRIGGER": {"payload": {"n": 7, "f": 1.5, "s": "héllo", "list": [3, 1, 2], "none": None, "yes": True}},
    "VARS": {"limit": 5},
}

EXPRESSIONS = [
    "TRIGGER.payload.n + VARS.limit * 2",
    "TRIGGER.payload.n > 5 && TRIGGER.payload.yes",
    "TRIGGER.payload.f * 2.0",
    "TRIGGER.payload.s + '!'",
    "TRIGGER.payload.s.size()",
    "TRIGGER.payload.list.map(x, x * 2)",
    "TRIGGER.payload.list.filter(x, x > 1)",
    "TRIGGER.payload.list.all(x, x > 0)",
    "TRIGGER.payload.list.exists(x, x == 2)",
    "TRIGGER.payload.list.exists_one(x, x == 2)",
    "has(TRIGGER.payload.nope)",
    "has(TRIGGER.payload.n)",
    "'n' in TRIGGER.payload",
    "2 in TRIGGER.payload.list",
    "TRIGGER.payload.none == null",
    "TRIGGER.payload.s.startsWith('h') ? [1, 2] : [3]",
    "{'a': TRIGGER.payload.n, 'b': [true, false]}",
    "7 / 2",
    "-7 % 3",
    "'a' < 'b'",
    "string(TRIGGER.payload.n) + 'x'",
    "int('42') + 1",
]

FAILING = ["TRIGGER.payload.nope == 1", "1 / 0", "9223372036854775807 + TRIGGER.payload.n", "int('x')"]


def independent(source: str) -> Any:
    environment = celpy.Environment()
    program = environment.program(environment.compile(source))
    value = program.evaluate({name: json_to_cel(root) for name, root in BINDINGS.items()})
    return decode(CELJSONEncoder().encode(value))


@pytest.mark.parametrize("source", EXPRESSIONS)
def test_both_give_the_same_value(source: str) -> None:
    assert analyse(source).problems == ()
    assert compile_cel(source).evaluate(BINDINGS) == independent(source)


@pytest.mark.parametrize("source", FAILING)
def test_both_fail_on_the_same_values(source: str) -> None:
    with pytest.raises(CELEvalError):
        independent(source)
    with pytest.raises(ExpressionError):
        compile_cel(source).evaluate(BINDINGS)
