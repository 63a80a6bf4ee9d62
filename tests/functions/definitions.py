"""The definitions that these tests run."""

from __future__ import annotations

import itertools
from typing import Any

HELLO: dict[str, Any] = {
    "environment": "default",
    "family_slug": "hello_world",
    "title": "Hello World",
    "steps": [
        {
            "ref": "greet",
            "type": "STEP_TYPE_DATAFLOW",
            "args": {
                "operation": "project",
                "input_expr": "TRIGGER",
                "redaction_policy": "none",
                "project": {"message": '"hello"'},
            },
        },
        {"ref": "pause", "type": "STEP_TYPE_WAIT", "args": {"duration": "2s"}},
    ],
    "edges": [{"source_ref": "greet", "target_ref": "pause", "type": "EDGE_TYPE_SUCCESS"}],
}


def chain(length: int, slug: str = "chain") -> dict[str, Any]:
    """That many action steps in a row, each an echo."""
    refs = [f"s{number}" for number in range(length)]
    return {
        "environment": "default",
        "family_slug": slug,
        "title": "Chain",
        "steps": [
            {"ref": ref, "type": "STEP_TYPE_ACTION", "action": "core.echo", "args": {"said": ref}} for ref in refs
        ],
        "edges": [
            {"source_ref": source, "target_ref": target, "type": "EDGE_TYPE_SUCCESS"}
            for source, target in itertools.pairwise(refs)
        ],
    }
