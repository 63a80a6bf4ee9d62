"""The workflows that the benchmarks run."""

from __future__ import annotations

from typing import Any

Document = dict[str, Any]


def chain(length: int) -> Document:
    """`length` no-op actions, one after the other."""
    return {
        "family_slug": f"chain_{length}",
        "steps": [_step(f"s{index}") for index in range(length)],
        "edges": [{"source_ref": f"s{index}", "target_ref": f"s{index + 1}"} for index in range(length - 1)],
    }


def dataflow_chain(length: int) -> Document:
    """`length` dataflow steps, each of which reads the one before: the coordinator resolves them within one tick."""
    read = ["TRIGGER", *(f"STEPS.s{index}.output" for index in range(length - 1))]
    return {
        "family_slug": f"dataflow_chain_{length}",
        "steps": [
            {
                "ref": f"s{index}",
                "type": "dataflow",
                "args": {"operation": "project", "input_expr": source, "project": {"n": str(index)}},
            }
            for index, source in enumerate(read)
        ],
        "edges": [{"source_ref": f"s{index}", "target_ref": f"s{index + 1}"} for index in range(length - 1)],
    }


def fan_out(width: int) -> Document:
    """`width` no-op actions at once between a first and a last."""
    middle = [f"m{index}" for index in range(width)]
    return {
        "family_slug": f"fan_out_{width}",
        "steps": [_step("first"), *(_step(ref) for ref in middle), _step("last")],
        "edges": [
            *({"source_ref": "first", "target_ref": ref} for ref in middle),
            *({"source_ref": ref, "target_ref": "last"} for ref in middle),
        ],
    }


def scatter() -> Document:
    """One no-op action per item of the input."""
    return {
        "family_slug": "scatter",
        "steps": [
            {"ref": "split", "type": "scatter", "args": {"items_expr": "TRIGGER.payload.items"}},
            {"ref": "work", "type": "action", "action": "core.echo", "args": {"n": "${{ ITEM }}"}},
            {"ref": "all", "type": "gather", "args": {}},
        ],
        "edges": [{"source_ref": "split", "target_ref": "work"}, {"source_ref": "work", "target_ref": "all"}],
    }


def _step(ref: str) -> Document:
    return {"ref": ref, "type": "action", "action": "core.echo", "args": {"n": 1}}
