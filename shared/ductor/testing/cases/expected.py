"""What must have come of a run, as a test file says it. Only the shape; `checks` compares."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from ductor.model.enums import NodeStatus, RunStatus
from ductor.model.json import JSON
from ductor.testing.cases.forms import Condition, Part, short, single


class ExpectedError(Part):
    """An error by its code, and perhaps a part of its message."""

    code: str
    message_contains: str = ""


Error = Annotated[ExpectedError | None, short("code", ExpectedError)]


class ExpectedNode(Part):
    """One step. `attempts` counts attempts, not redeliveries; `output` is compared whole."""

    status: NodeStatus | None = Field(default=None, strict=False)
    attempts: int | None = Field(default=None, ge=0)
    output: JSON = None
    output_contains: JSON = None
    error: Error = None


class ExpectedCall(Part):
    """An action that was called, by its name or the step that called it; with arguments that are like these.

    `times` counts the attempts that are like this; without it there must be at least one, with 0 none.
    """

    action: str = ""
    step: str = ""
    args: JSON = None
    args_contain: JSON = None
    times: int | None = Field(default=None, ge=0)


class Expected(Part):
    """What a run must show. `path`: the steps that began, in this order; a list inside stands for any order.

    `output_contains` and `args_contain` compare what they name and ignore the rest. `check` holds CEL conditions on
    RUN (`.status`, `.output`, `.error`), STEPS, CONTEXT and TRIGGER. `children` are runs of subworkflow steps,
    `compensation` is the run that undid, `runs` are those that a moment started.
    """

    status: RunStatus | None = Field(default=None, strict=False)
    path: list[str | list[str]] | None = None
    nodes: dict[str, Annotated[ExpectedNode, short("status", ExpectedNode)]] = Field(default_factory=dict)
    output: JSON = None
    output_contains: JSON = None
    error: Error = None
    context_contains: JSON = None
    check: Annotated[list[Condition], single(str)] = Field(default_factory=list)
    calls: list[ExpectedCall] = Field(default_factory=list)
    children: dict[str, Expected] = Field(default_factory=dict)
    compensation: Expected | None = None
    runs: dict[str, Expected] = Field(default_factory=dict)
