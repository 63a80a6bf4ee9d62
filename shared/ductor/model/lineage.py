"""How runs that belong together find each other: ids that derive from who asked, so that asking again is harmless."""

from __future__ import annotations

import hashlib
from typing import Final

import msgspec

from ductor.model.payload import Payload

MAX_NESTING: Final = 10
"""Deepest subworkflow: a root run has depth 0."""

WORKFLOW: Final = "workflow"
COMPENSATION: Final = "compensation"
HOOK: Final = "hook"
"""Kinds of run (`Origin.kind`): what a definition says, what undoes a run that has ended, what is called at its end."""

PARENT_DUTY: Final = "parent"
SUCCESSOR_DUTY: Final = "successor"
"""What a run that has ended still owes, beside its linked runs (by their kind): see `RunState.duties`."""


def derived_run_id(*parts: str | int) -> str:
    """A run id in the form of a UUID; the same parts always give the same one."""
    digest = hashlib.sha256("\x1f".join(map(str, parts)).encode()).hexdigest()
    return f"{digest[:8]}-{digest[8:12]}-{digest[12:16]}-{digest[16:20]}-{digest[20:32]}"


def child_run_id(run_id: str, node: str, attempt: int, generation: int) -> str:
    """The child run of one attempt of a subworkflow step."""
    return derived_run_id("child", run_id, node, attempt, generation)


def successor_run_id(run_id: str, request_id: str) -> str:
    """The run that a continue-as-new request starts."""
    return derived_run_id("successor", run_id, request_id)


def fork_run_id(run_id: str, request_id: str) -> str:
    """The run that a reset request forks from a run."""
    return derived_run_id("fork", run_id, request_id)


def linked_run_id(run_id: str, kind: str, seq: int) -> str:
    """The compensation or hook run that transition `seq` of a run planned."""
    return derived_run_id("linked", run_id, kind, seq)


def step_of(node: str) -> str:
    """The step of a node: the nodes of a scatter's items are named `step@0`, `step@0.3`."""
    return node.partition("@")[0]


def child_key(node: str, attempt: int, generation: int) -> str:
    """How a run keeps one of its children in mind (`RunState.children`)."""
    return f"{node}/{attempt}/{generation}"


def read_child_key(key: str) -> tuple[str, int, int]:
    """Node, attempt and generation of a child."""
    node, attempt, generation = key.rsplit("/", 2)
    return node, int(attempt), int(generation)


class Linked(msgspec.Struct, frozen=True, omit_defaults=True):
    """A run planned at the end of another. `plan` is a list of rendered targets, `undoes`: some are inverses."""

    seq: int
    plan: Payload
    undoes: bool = False


class Successor(msgspec.Struct, frozen=True, omit_defaults=True):
    """The run that goes on after continue-as-new. `context` is its initial run context.

    `discard`: signals that no step has taken do not move over.
    """

    run_id: str
    context: Payload
    discard: bool = False
