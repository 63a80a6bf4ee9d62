"""Resets on the wire: forks of a run, the points they may start from, and what they would do."""

from __future__ import annotations

from typing import Final

from pydantic import Field

from ductor.api.models.common import AnswerModel, JsonObject, Metadata, RequestModel, When

MAX_NAMED: Final = 500


class PointBody(RequestModel):
    """Where to fork, with which other inputs, and which later results to take over."""

    transition_seq: int = Field(ge=0, description="Everything up to this transition of the run's history has happened.")
    input_overrides: JsonObject = Field(
        {}, description="Args by action step, or by node of one item (`charge@3`), instead of rendering them."
    )
    preserve_outputs: list[str] = Field(
        [], max_length=MAX_NAMED, description="Steps, or nodes of items, whose results are taken over."
    )


class ResetBody(PointBody):
    """A reset. `request_id` makes repeats harmless."""

    request_id: str
    reason: str = ""


class ResetAnswer(AnswerModel):
    """The fork is there and goes on by itself."""

    status: str = "accepted"
    run_id: str
    new_run_id: str
    metadata: Metadata


class StepInItemsModel(AnswerModel):
    """A step inside a scatter that goes on with its items."""

    step: str
    scatter: str
    kept: int = Field(description="Items in which it had completed by then and keeps its result.")
    adopted: int = Field(description="Items in which a later result is taken over.")
    of: int = Field(description="Items that had begun.")


class PreviewAnswer(AnswerModel):
    """What a reset would do."""

    run_id: str
    kept: list[str] = Field(description="Steps that had ended by then and keep their results.")
    adopted: list[str] = Field(description="Later steps whose results are taken over when their turn comes.")
    rerun: list[str] = Field(description="Steps that are run, or decided, again.")
    items: list[StepInItemsModel] = Field(description="Steps inside of scatters that go on, and are not all run again.")
    metadata: Metadata


class ResetTarget(AnswerModel):
    """A point to fork from."""

    transition_seq: int
    at: When
    node: str | None
    reason: str


class TargetsAnswer(AnswerModel):
    """The points of a run's history that a reset may start from, oldest first."""

    run_id: str
    targets: list[ResetTarget]
    metadata: Metadata
