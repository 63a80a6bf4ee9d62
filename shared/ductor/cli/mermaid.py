"""`ductor workflow graph`: a definition file as a Mermaid flowchart. Draws what is written, faults included."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import typer

from ductor.cli.failure import Exit, Failure
from ductor.cli.publish import read
from ductor.cli.sources import collect
from ductor.model.enums import EdgeType, StepType

Document = dict[str, Any]

_SHAPES: Final = {
    StepType.CONDITION: ("{", "}"),
    StepType.DATAFLOW: ("[/", "/]"),
    StepType.WAIT: ("([", "])"),
    StepType.WAIT_EVENT: ("([", "])"),
    StepType.EVENT_SET: ("([", "])"),
    StepType.DIGEST: ("([", "])"),
    StepType.APPROVAL: ("[[", "]]"),
    StepType.SCATTER: ("[\\", "/]"),
    StepType.GATHER: ("[/", "\\]"),
    StepType.SUBWORKFLOW: ("[[", "]]"),
}
_PLAIN: Final = ("[", "]")
_MAX_LABEL: Final = 60


def run(name: str) -> None:
    """Print the flowchart of one file. Raises Failure for one that has no steps to draw."""
    for source in collect([name]):
        _, document = read(source)
        steps = document.get("steps")
        if not isinstance(steps, list) or not steps:
            hint = "a definition has `steps` and `edges`; `ductor workflow validate` says what is wrong with a file"
            raise Failure(f"{name} has no steps to draw", code=Exit.FAILED, hint=hint)
        for line in flowchart(document):
            typer.echo(line)


def flowchart(document: Document) -> Iterator[str]:
    """Lines of a Mermaid flowchart: a node per step, shaped by its type; an edge per edge, labelled unless success."""
    steps = [step for step in document.get("steps") or () if isinstance(step, dict)]
    refs = [str(step.get("ref", step.get("id", ""))) for step in steps]
    ids = {ref: f"s{place}" for place, ref in enumerate(refs)}
    yield "flowchart TD"
    for ref, step in zip(refs, steps, strict=True):
        opening, closing = _SHAPES.get(_step_type(step) or StepType.ACTION, _PLAIN)
        yield f'    {ids[ref]}{opening}"{_label(ref, step)}"{closing}'
    for edge in document.get("edges") or ():
        if isinstance(edge, dict):
            source, target = (ids.get(str(edge.get(end))) for end in ("source_ref", "target_ref"))
            if source and target:
                yield f"    {source} {_arrow(edge)} {target}"


def _step_type(step: Document) -> StepType | None:
    kind = step.get("type")
    return StepType.parse(kind) if isinstance(kind, str) else None


def _label(ref: str, step: Document) -> str:
    kind = _step_type(step)
    doing = str(step.get("action") or (kind.value if kind else step.get("type") or ""))
    return f"{_text(str(step.get('title') or ref))}<br/><small>{_text(doing)}</small>"


def _arrow(edge: Document) -> str:
    given = edge.get("type")
    kind = EdgeType.parse(given) if isinstance(given, str) else EdgeType.SUCCESS
    words = [] if kind is EdgeType.SUCCESS else [kind.value if kind else str(given)]
    if edge.get("condition"):
        words.append(str(edge["condition"]))
    failure = kind in (EdgeType.ERROR, EdgeType.TIMEOUT)
    arrow = "-.->" if failure else "-->"
    return f'{arrow}|"{_text(": ".join(words))}"|' if words else arrow


def _text(text: str) -> str:
    """Text that can mean nothing to Mermaid or to the page around it."""
    short = text if len(text) <= _MAX_LABEL else f"{text[: _MAX_LABEL - 1]}…"
    return "".join(
        char if char.isalnum() or char in " _-.,:/()+*=" or ord(char) > 127 else f"#{ord(char)};"
        for char in " ".join(short.split())
    )
