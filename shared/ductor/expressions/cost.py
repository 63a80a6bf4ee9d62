"""Refuses evaluations that the CEL runtime would not bound by itself. Never evaluates anything."""

from __future__ import annotations

from ductor.expressions.tree import Node
from ductor.model.json import JSON


def unbounded(tree: Node) -> str | None:
    """Why an expression can never be bounded, or None."""
    return None


def is_heavy(tree: Node) -> bool:
    return False


def admit(tree: Node, data: dict[str, JSON], source: str) -> None:
    return None
