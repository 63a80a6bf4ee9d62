"""docs/actions.md: every built-in action is there with all of its args, and the sample policy allows what they take."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from ductor.actions.registry import default_registry

GUIDE = (Path(__file__).parents[3] / "docs" / "actions.md").read_text()
ROWS = {
    name: line for line in GUIDE.splitlines() for name in re.findall(r"`([a-z0-9]+\.[a-z_]+)`", line.split(" | ")[0])
}
BUILT_IN = (
    "core.",
    "http.",
    "ductor.",
    "lambda.",
    "sqs.",
    "sns.",
    "eventbridge.",
    "s3.",
    "dynamodb.",
    "email.",
    "step",
)
REGISTRY = default_registry()
NAMES = [name for name in REGISTRY.names() if name.startswith((*BUILT_IN, "stepfunctions."))]
CALLS_AWS = [name for name in NAMES if not name.startswith(("core.", "http.", "ductor."))]


def cells(name: str) -> list[str]:
    """The row of the table that has a column of permissions."""
    rows = [line for line in GUIDE.splitlines() if line.startswith(f"| `{name}` |")]
    return rows[0].strip("| ").split(" | ")


def test_every_built_in_action_is_described() -> None:
    assert [name for name in NAMES if name not in ROWS] == []


@pytest.mark.parametrize("name", [*CALLS_AWS, "ductor.trigger", "ductor.publish_event"])
def test_every_arg_stands_in_the_table(name: str) -> None:
    action = REGISTRY.get(name)
    assert action is not None
    assert action.args_model is not None
    fields = action.args_model.model_fields.items()
    accepted = {str(field.validation_alias or own) for own, field in fields} - {"region"}
    assert {arg for arg in accepted if f"`{arg}`" not in cells(name)[1]} == set()


def test_the_sample_policy_allows_what_the_actions_take() -> None:
    (policy,) = [json.loads(text) for text in re.findall(r"```json\n(.*?)```", GUIDE, re.DOTALL) if "Statement" in text]
    allowed = {
        action
        for statement in policy["Statement"]
        for action in ([statement["Action"]] if isinstance(statement["Action"], str) else statement["Action"])
    }
    taken = {one for name in CALLS_AWS for one in re.findall(r"`([a-z0-9]+:[A-Za-z]+)`", cells(name)[3])}
    assert allowed - {"s3:ListBucket"} == taken
