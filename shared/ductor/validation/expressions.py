"""The rules of expressions and templates: syntax, roots, and that a step reads only what has certainly been decided."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ductor.engine.regions import ROOT, Regions, enters
from ductor.expressions.analysis import analyse
from ductor.expressions.reads import Reads
from ductor.expressions.scanner import end_of_expression
from ductor.model.definition import Step
from ductor.model.json import JSON
from ductor.steps import common
from ductor.steps.reading import clipped, joined, nearest
from ductor.steps.registry import STEP_SPECS
from ductor.steps.spec import COMMON_ROOTS, Expression, ExpressionKind
from ductor.validation.found import Found
from ductor.validation.nesting import visible
from ductor.validation.view import Json, View, objects

MAX_EXPRESSIONS: Final = 20_000
"""Expressions looked at per definition: compiling takes some 20 µs each."""

_EVENT: Final = frozenset({"EVENT", "VARS"})
_ADMISSION: Final = frozenset({"TRIGGER", "VARS", "RUN"})
_SCATTERED: Final = frozenset({"ITEM", "INDEX"})
_OPEN: Final = "${{"


class Checker:
    """Checks the expressions of one definition. `above` is a bit set of earlier steps per step."""

    def __init__(self, view: View, above: list[int], regions: Regions, found: Found) -> None:
        self._view, self._above, self._regions, self._found = view, above, regions, found
        self._seen = {region: visible(regions, region) for region in {ROOT, *regions.region}}
        self._visible = self._seen[ROOT]
        self._left = MAX_EXPRESSIONS

    def check(self) -> None:
        for index, step in enumerate(self._view.steps):
            if step is not None:
                self._step(index, step)
        for at in self._view.edges:
            source = self._view.refs.get(at.edge.source_ref)
            if at.edge.condition and source is not None:
                expression = Expression("condition", at.edge.condition, ExpressionKind.CONDITION)
                region = source if enters(self._view.type_of(at.edge.source_ref), at.edge.type) else None
                roots = self._enter(source, region)
                self._expression(at.field, expression, roots, self._above[source] | 1 << source)
        self._visible = self._seen[ROOT]
        self._document(self._view.document)

    def _step(self, index: int, step: Step) -> None:
        roots, above = self._enter(index), self._above[index]
        for expression in common.before(step):
            self._expression(step.ref, expression, roots, above)
        if index in self._regions.scatter_of:
            self._enter(index, self._regions.scatter_of[index])
        for expression in STEP_SPECS[step.type].expressions(step):
            self._expression(step.ref, expression, roots, above)
        self._enter(index)
        for expression in common.after(step):
            self._expression(step.ref, expression, roots, above | 1 << index)
        for expression in common.at_end(step):
            self._expression(step.ref, expression, roots, -1)

    def _enter(self, index: int, region: int | None = None) -> frozenset[str]:
        """The roots of a step's expressions (or of those in `region`); what they may read follows."""
        own = self._regions.region[index] if region is None else region
        self._visible = self._seen.get(own, -1)
        return COMMON_ROOTS if own == ROOT else COMMON_ROOTS | _SCATTERED

    def _document(self, document: Json) -> None:
        self._template("output", document.get("output"), COMMON_ROOTS, -1)
        for index, trigger in enumerate(objects(document.get("triggers"))):
            at = f"triggers[{index}]"
            self._cel(at, trigger.get("condition"), ExpressionKind.CONDITION, _EVENT)
            for name in ("input", "correlation_labels"):
                self._template(f"{at}.{name}", trigger.get(name), _EVENT, 0)
        for index, checkpoint in enumerate(objects(document.get("checkpoints"))):
            step = self._view.refs.get(str(checkpoint.get("step_ref")))
            above = -1 if step is None else self._above[step] | 1 << step
            self._template(f"checkpoints[{index}].output", checkpoint.get("output"), COMMON_ROOTS, above)
        for name, hook in document.get("hooks", {}).items():
            self._template(f"hooks.{name}.args", hook.get("args"), COMMON_ROOTS, -1)
            self._template(f"hooks.{name}.connection_ref", hook.get("connection_ref"), COMMON_ROOTS, -1)
        key = document.get("concurrency", {}).get("key")
        self._cel("concurrency", key, ExpressionKind.VALUE, _ADMISSION, "key")

    def _cel(self, at: str, source: JSON, kind: ExpressionKind, roots: frozenset[str], name: str = "condition") -> None:
        if isinstance(source, str) and source:
            self._expression(at, Expression(name, source, kind), roots, 0)

    def _template(self, field: str, value: JSON, roots: frozenset[str], above: int) -> None:
        if value is not None:
            self._expression("", Expression(field, value, ExpressionKind.TEMPLATE), roots, above)

    def _expression(self, at: str, expression: Expression, roots: frozenset[str], above: int) -> None:
        field, roots = joined(at, expression.path), roots | expression.roots
        if expression.kind is not ExpressionKind.TEMPLATE:
            self._source(field, expression.source, roots, above, expression.kind is ExpressionKind.CONDITION)
            return
        for path, text in _texts(expression.source, field):
            for source in _embedded(text):
                if source:
                    self._source(path, source, roots, above, False)
                else:
                    why = "is empty" if source == "" else "is not closed by }}"
                    self._found.fault(
                        path, "TEMPLATE_SYNTAX", f"a ${{{{ {why}; write ${{{{ expression }}}}, or $${{{{ for text"
                    )

    def _source(self, field: str, source: str, roots: frozenset[str], above: int, condition: bool) -> None:
        self._left -= 1
        if self._left <= 0 or self._found.full:
            if self._left == 0:
                self._found.fault("", "CEL_TOO_COMPLEX", f"holds more than {MAX_EXPRESSIONS} expressions; split it")
            return
        if source.lstrip().startswith(_OPEN):
            self._found.fault(field, "CEL_SYNTAX", "this field is CEL already; write it without ${{ }}")
            return
        analysis = analyse(source, expect_bool=condition)
        for problem in analysis.problems:
            self._found.fault(field, problem.code, problem.message)
        for root in sorted(analysis.reads.roots - roots):
            allowed = ", ".join(sorted(roots))
            self._found.fault(field, "CEL_UNKNOWN_ROOT", f"{root} has no value here; use {allowed}")
        if "STEPS" in roots:
            self._steps(field, analysis.reads, above)

    def _steps(self, field: str, reads: Reads, above: int) -> None:
        for ref in sorted(reads.steps):
            index = self._view.refs.get(ref)
            if index is None:
                near = nearest(ref, self._view.refs) if self._found.may_suggest() else None
                hint = f"did you mean '{near}'?" if near else "name a step of this definition"
                self._found.fault(field, "CEL_UNKNOWN_STEP", f"no step has the ref '{clipped(ref)}'; {hint}")
            elif not self._visible >> index & 1:
                message = f"reads step '{ref}', which runs once per item of a scatter; read what its gather collects"
                self._found.fault(field, "CEL_STEP_NOT_UPSTREAM", message)
            elif not above >> index & 1:
                message = f"reads step '{ref}', which is not before it; add edges that lead from '{ref}' to here"
                self._found.fault(field, "CEL_STEP_NOT_UPSTREAM", message)


def _texts(value: JSON, path: str) -> Iterator[tuple[str, str]]:
    """Every string of a JSON value that opens an expression, with its path. The caller has bounded the nesting."""
    if isinstance(value, str):
        if _OPEN in value:
            yield path, value
    elif isinstance(value, dict):
        for name, item in value.items():
            yield from _texts(item, joined(path, clipped(name)))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _texts(item, f"{path}[{index}]")


def _embedded(text: str) -> Iterator[str | None]:
    """The expressions of one templated text; None for one that is not closed."""
    start = text.find(_OPEN)
    while start >= 0:
        position = start + len(_OPEN)
        if start == 0 or text[start - 1] != "$":
            end = end_of_expression(text, position)
            if end < 0:
                yield None
                return
            yield text[position:end].strip()
            position = end + 2
        start = text.find(_OPEN, position)
