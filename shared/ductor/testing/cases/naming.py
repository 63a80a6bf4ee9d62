"""Whether the names in a test lead anywhere: a mock of a step that does not exist would never answer, unnoticed."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterator, Sequence

from ductor.actions.registry import ActionRegistry
from ductor.model.json import JSON
from ductor.testing.cases.checks import Failure
from ductor.testing.cases.document import Case, CaseFile, Given
from ductor.testing.cases.expected import Expected
from ductor.testing.cases.mocks import AI_STEPS
from ductor.testing.cases.outside import task_types
from ductor.testing.cases.reading import Path

_LINKED = ("undo-", "finally-", "hook-")
"""How the steps of compensations and hooks begin; their names depend on what the run has done."""


class Names:
    """The steps and actions that a test may name. The last document is that of the workflow under test."""

    def __init__(self, documents: Sequence[dict[str, JSON]], actions: ActionRegistry) -> None:
        self.refs = {str(document.get("family_slug")): _refs(document) for document in documents}
        self._main = str(documents[-1].get("family_slug"))
        kinds = {kind for types in task_types(documents, "").values() for kind in types}
        self._actions = {*actions.names(), *kinds, *(kind.value for kind in AI_STEPS)}

    def faults(self, file: CaseFile, case: Case, place: Path) -> Iterator[Failure]:
        """Names of this case that lead nowhere, in what is given and in the calls that it expects."""
        yield from self._of_mocks(file.given, ("given",))
        yield from self._of_mocks(case.given, (*place, "given"))
        yield from self._of_calls(case.then, (*place, "then"))
        for number, moment in enumerate(case.when):
            if moment.expect is not None:
                yield from self._of_calls(moment.expect, (*place, "when", number, "expect"))

    def _of_mocks(self, given: Given, place: Path) -> Iterator[Failure]:
        for key in given.steps:
            family, _, node = key.rpartition("/")
            yield from self._of_step(node, self.refs.get(family or self._main, set()), (*place, "steps", key))
        for name in given.actions:
            yield from self._of_action(name, (*place, "actions", name))

    def _of_calls(self, expected: Expected, place: Path) -> Iterator[Failure]:
        steps = set().union(*self.refs.values())
        for number, call in enumerate(expected.calls):
            at = (*place, "calls", number)
            if call.step:
                yield from self._of_step(call.step, steps, (*at, "step"))
            if call.action:
                yield from self._of_action(call.action, (*at, "action"))
        for name, run in (*expected.children.items(), *expected.runs.items()):
            yield from self._of_calls(run, (*place, name))

    def _of_step(self, node: str, known: Collection[str], place: Path) -> Iterator[Failure]:
        ref = node.partition("@")[0]
        if ref not in known and not ref.startswith(_LINKED):
            yield _unknown("a step", ref, known, place)

    def _of_action(self, name: str, place: Path) -> Iterator[Failure]:
        if name not in self._actions:
            yield _unknown("an action", name, self._actions, place)


def _refs(document: dict[str, JSON]) -> set[str]:
    steps = [step for step in document.get("steps") or () if isinstance(step, dict)]
    return {str(step.get("ref") or step.get("id")) for step in steps}


def _unknown(what: str, name: str, known: Collection[str], place: Path) -> Failure:
    near = difflib.get_close_matches(name, known, n=1)
    return Failure(place, what, f"no such {what.split()[1]}: {name}", (f"did you mean {near[0]}?",) if near else ())
