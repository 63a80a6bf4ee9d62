"""Args against their model: before a run, with templates in them, and when the action runs."""

from __future__ import annotations

import datetime
from typing import Any, Self

import pytest
from pydantic import BaseModel, ConfigDict, Field, model_validator

from ductor.actions.action import Action
from ductor.actions.context import ActionContext
from ductor.actions.errors import ActionError
from ductor.actions.registry import ActionRegistry

T = "${{ TRIGGER.x }}"


class Line(BaseModel):
    sku: str
    count: int = Field(ge=1)


class OrderArgs(BaseModel):
    customer: str = Field(max_length=5)
    amount: int
    lines: list[Line] = []
    contact: Line | int | None = None
    due: datetime.date | None = None
    sender: str = Field(default="", alias="from")

    @model_validator(mode="after")
    def _amount_fits(self) -> Self:
        if self.amount == 13:
            raise ValueError("amount must not be 13")
        return self


class OpenArgs(BaseModel):
    model_config = ConfigDict(extra="allow")

    known: int = 0


def run(args: Any, ctx: ActionContext) -> dict[str, Any]:
    return {"args": str(args), "node": ctx.node}


ORDER = Action(name="order", function=run, args_model=OrderArgs)
REGISTRY = ActionRegistry(
    [
        ORDER,
        Action(name="open", function=run, args_model=OpenArgs),
        Action(name="any", function=run),
    ]
)


def faults(args: dict[str, Any], name: str = "order") -> list[str]:
    return [path for path, _ in REGISTRY.validate_args(name, args)]


@pytest.mark.parametrize(
    "args",
    [
        {"customer": "ada", "amount": 3},
        {"customer": T, "amount": T},
        {"customer": "x-" + T, "amount": T, "lines": T},
        {"customer": "ada", "amount": 1, "lines": [T, {"sku": "a", "count": T}]},
        {"customer": "ada", "amount": 1, "contact": T},
        {"customer": "ada", "amount": 1, "contact": {"sku": "a", "count": T}},
        {"customer": "ada", "amount": 1, "due": T},
        {"customer": "ada", "amount": 1, "due": "2026-01-31", "from": "me"},
    ],
)
def test_sound_args_have_no_fault(args: dict[str, Any]) -> None:
    assert faults(args) == []


@pytest.mark.parametrize(
    ("args", "paths"),
    [
        ({}, ["customer", "amount"]),
        ({"customer": T}, ["amount"]),
        ({"customer": T, "amount": "many"}, ["amount"]),
        ({"customer": "much too long", "amount": T}, ["customer"]),
        ({"customer": T, "amount": T, "amuont": T}, ["amuont"]),
        ({"customer": T, "amount": T, "lines": [{"count": T}]}, ["lines[0].sku"]),
        ({"customer": T, "amount": T, "lines": [{"sku": T, "count": 0}]}, ["lines[0].count"]),
        ({"customer": T, "amount": T, "sender": "x"}, ["sender"]),
        ({"customer": "ada", "amount": 13}, [""]),
        ({"customer": "ada", "amount": "$${{ no template }}"}, ["amount"]),
    ],
)
def test_what_no_template_could_repair_is_found(args: dict[str, Any], paths: list[str]) -> None:
    assert faults(args) == paths


def test_an_unknown_field_is_told_what_there_is() -> None:
    [(path, message)] = REGISTRY.validate_args("order", {"customer": T, "amount": 1, "amuont": 2})

    assert path == "amuont"
    assert message == "is not a field of this action; its fields: amount, contact, customer, due, from, lines"


def test_a_model_that_allows_more_has_no_unknown_fields() -> None:
    assert faults({"known": 1, "other": 2}, "open") == []


def test_a_plain_dict_takes_anything() -> None:
    assert faults({"whatever": [1, T]}, "any") == []


def test_parsed_args_are_the_model() -> None:
    parsed = ORDER.parse({"customer": "ada", "amount": 2, "lines": [{"sku": "a", "count": 1}], "due": "2026-01-31"})

    assert isinstance(parsed, OrderArgs)
    assert parsed.lines == [Line(sku="a", count=1)]
    assert parsed.due == datetime.date(2026, 1, 31)


def test_64_bit_numbers_reach_the_model_exactly() -> None:
    parsed = ORDER.parse({"customer": "ada", "amount": 9007199254740993})

    assert isinstance(parsed, OrderArgs)
    assert parsed.amount == 9007199254740993


def test_refused_args_name_each_fault_and_no_value() -> None:
    with pytest.raises(ActionError) as refused:
        ORDER.parse({"customer": "secret-text", "amount": "secret-number", "other": "secret-field"})

    assert (refused.value.code, refused.value.retryable) == ("ACTION_ARGS_INVALID", False)
    assert [fault["path"] for fault in refused.value.details] == ["other", "customer", "amount"]
    assert "secret" not in refused.value.message + str(refused.value.details)


@pytest.mark.parametrize("args", [None, [], "text", 3])
def test_args_that_are_no_object_are_refused(args: Any) -> None:
    with pytest.raises(ActionError, match="must be an object"):
        REGISTRY.get("any").parse(args)  # type: ignore[union-attr]


def test_an_action_may_change_its_args_without_changing_the_input() -> None:
    stored = {"items": [1]}
    parsed = Action(name="any", function=run).parse(stored)
    assert isinstance(parsed, dict)
    parsed["items"].append(2)

    assert stored == {"items": [1]}


class Fragile(BaseModel):
    a: int = 0

    @model_validator(mode="before")
    @classmethod
    def _breaks(cls, data: Any) -> Any:
        raise KeyError(str(data))


def test_a_validator_that_breaks_is_a_fault_not_a_crash() -> None:
    registry = ActionRegistry([Action(name="fragile", function=run, args_model=Fragile)])

    assert registry.validate_args("fragile", {"a": 1}) == [("", "cannot be checked: KeyError")]
    assert registry.validate_args("fragile", {"a": T}) == []
