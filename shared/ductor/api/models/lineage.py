"""Runs that belong together on the wire: continue-as-new and the tree of runs."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from ductor.api.models.common import AnswerModel, Metadata, RequestModel, When


class ContinueBody(RequestModel):
    """How a run goes on as another one."""

    request_id: str
    reason: str = ""
    seed_run_context: dict[str, Any] | None = Field(None, description="The successor's initial run context.")
    discard_pending: bool = Field(False, description="Stop live attempts and child runs, and drop kept signals.")


class ContinueAnswer(AnswerModel):
    """The intent is durable. `new_run_id` exists once it is applied; a repeat answers the same one."""

    status: str = "accepted"
    run_id: str
    new_run_id: str
    metadata: Metadata


class TreeRun(AnswerModel):
    """One run of a tree."""

    run_id: str
    relation: str = Field(description="root, child, compensation, hook or successor: of the run `asked_by`.")
    asked_by: str
    node: str = Field(description="The subworkflow step that a child belongs to.")
    workflow_type: str
    definition_version: int
    status: str
    nesting_depth: int
    created_at: When
    finished_at: When


class RunTree(AnswerModel):
    """The tree that one trigger led to, nearest first; at most 500 runs."""

    root_run_id: str
    runs: list[TreeRun]
    truncated: bool
