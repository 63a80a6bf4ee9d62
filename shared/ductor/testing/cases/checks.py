"""Compares what a test expects of a run with what became of it: every difference, with its place in the file."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

import msgspec

from ductor.expressions import ExpressionError, compile_cel
from ductor.model.enums import RunStatus
from ductor.model.errors import StepError
from ductor.model.json import JSON
from ductor.testing.cases.comparing import MAX_DIFFERENCES, differences, text
from ductor.testing.cases.expected import Expected, ExpectedCall, ExpectedError, ExpectedNode
from ductor.testing.cases.observed import Call, Observed
from ductor.testing.cases.reading import Path


class Failure(msgspec.Struct, frozen=True):
    """One expectation that does not hold. `place` is where it stands in the test file, `details` say more."""

    place: Path
    expected: str
    actual: str
    details: tuple[str, ...] = ()


def check_final(expected: Expected, run: Observed, place: Path) -> Iterator[Failure]:
    """As `check`; the run must also have ended well, unless the test says how it ends."""
    if expected.status is None:
        ends = (RunStatus.FAILED, RunStatus.TIMED_OUT) if expected.error is not None else (RunStatus.COMPLETED,)
        if run.status not in ends:
            wanted = " or ".join(status.value for status in ends)
            yield Failure((*place, "status"), wanted, _status(run))
    yield from check(expected, run, place)


def check(expected: Expected, run: Observed, place: Path) -> Iterator[Failure]:
    """Every expectation about this run that does not hold."""
    if expected.status is not None and run.status is not expected.status:
        yield Failure((*place, "status"), expected.status.value, _status(run))
    if expected.error is not None:
        yield from _error(expected.error, run.error, (*place, "error"))
    if expected.path is not None:
        yield from _path(expected.path, run.path(), (*place, "path"))
    for node, wanted in expected.nodes.items():
        yield from _node(node, wanted, run, (*place, "nodes", node))
    yield from _values(expected, run, place)
    for number, condition in enumerate(expected.check):
        yield from _condition(condition, run, (*place, "check", number))
    for number, call in enumerate(expected.calls):
        yield from _call(call, list(run.calls()), (*place, "calls", number))
    yield from _relatives(expected, run, place)


def _status(run: Observed) -> str:
    return f"{run.status.value} ({run.error.code}: {run.error.message})" if run.error else run.status.value


def _values(expected: Expected, run: Observed, place: Path) -> Iterator[Failure]:
    if expected.gives("output"):
        yield from _value(expected.output, run.output, (*place, "output"), part=False)
    if expected.gives("output_contains"):
        yield from _value(expected.output_contains, run.output, (*place, "output_contains"), part=True)
    if expected.gives("context_contains"):
        yield from _value(expected.context_contains, run.context, (*place, "context_contains"), part=True)


def _value(expected: JSON, actual: JSON, place: Path, *, part: bool) -> Iterator[Failure]:
    found = tuple(islice(differences(expected, actual, part=part), MAX_DIFFERENCES))
    if found:
        yield Failure(place, text(expected), text(actual), found)


def _error(expected: ExpectedError, actual: StepError | None, place: Path) -> Iterator[Failure]:
    shown = f"{actual.code}: {actual.message}" if actual is not None else "no error"
    if actual is None or actual.code != expected.code:
        yield Failure(place, expected.code, shown)
    elif expected.message_contains not in actual.message:
        yield Failure(place, f"a message with {expected.message_contains!r}", shown)


def _path(expected: list[str | list[str]], actual: list[str], place: Path) -> Iterator[Failure]:
    left = list(actual)
    for part in expected:
        group = [part] if isinstance(part, str) else part
        if sorted(left[: len(group)]) != sorted(group):
            break
        del left[: len(group)]
    else:
        if not left:
            return
    yield Failure(place, _joined(expected), _joined(list(actual)), (f"different from {left[0]!r} on",) if left else ())


def _joined(path: list[str | list[str]] | list[str]) -> str:
    return " → ".join(part if isinstance(part, str) else f"[{', '.join(part)}]" for part in path) or "no step"


def _node(node: str, expected: ExpectedNode, run: Observed, place: Path) -> Iterator[Failure]:
    if not run.knows(node):
        yield Failure(place, f"a step {node}", "no such step", (f"the steps are {', '.join(run.refs)}",))
        return
    if expected.status is not None and run.node_status(node) != expected.status.value:
        error = run.error_of(node)
        told = f" ({error.code}: {error.message})" if error else ""
        yield Failure(place, expected.status.value, f"{run.node_status(node)}{told}")
    if expected.attempts is not None and run.attempts_of(node) != expected.attempts:
        yield Failure((*place, "attempts"), str(expected.attempts), str(run.attempts_of(node)))
    if expected.error is not None:
        yield from _error(expected.error, run.error_of(node), (*place, "error"))
    if expected.gives("output"):
        yield from _value(expected.output, run.output_of(node), (*place, "output"), part=False)
    if expected.gives("output_contains"):
        yield from _value(expected.output_contains, run.output_of(node), (*place, "output_contains"), part=True)


def _condition(source: str, run: Observed, place: Path) -> Iterator[Failure]:
    try:
        value = compile_cel(source).evaluate(run.bindings())
    except ExpressionError as fault:
        yield Failure(place, source, f"cannot be evaluated: {fault.message}")
        return
    if value is not True:
        yield Failure(place, source, text(value))


def _call(expected: ExpectedCall, calls: list[Call], place: Path) -> Iterator[Failure]:
    named = [call for call in calls if _is_named(expected, call)]
    found = sum(1 for call in named if not any(_unlike(expected, call)))
    if found == expected.times if expected.times is not None else found:
        return
    wanted = "at least once" if expected.times is None else f"{expected.times} times"
    what = " ".join(part for part in (expected.action, expected.step and f"of step {expected.step}") if part)
    shown = [f"was called: {call.node} {call.action} {text(call.args)}" for call in named[:MAX_DIFFERENCES]]
    near = [f"  {line}" for line in _unlike(expected, named[0])][:MAX_DIFFERENCES] if named and not found else []
    yield Failure(place, f"{what or 'any action'}, {wanted} with these arguments", f"{found} times", (*shown, *near))


def _is_named(expected: ExpectedCall, call: Call) -> bool:
    step = expected.step in ("", call.node, call.node.partition("@")[0])
    return step and expected.action in ("", call.action)


def _unlike(expected: ExpectedCall, call: Call) -> Iterator[str]:
    if expected.gives("args"):
        yield from differences(expected.args, call.args, part=False)
    if expected.gives("args_contain"):
        yield from differences(expected.args_contain, call.args, part=True)


def _relatives(expected: Expected, run: Observed, place: Path) -> Iterator[Failure]:
    """The runs that this one led to."""
    for node, wanted in expected.children.items():
        at = (*place, "children", node)
        child = run.child(node)
        if child is None:
            yield Failure(at, f"a child run of {node}", "none was started")
        else:
            yield from check_final(wanted, child, at)
    if expected.gives("compensation"):
        undone, at = run.compensation(), (*place, "compensation")
        if expected.compensation is None and undone is not None:
            yield Failure(at, "no compensation", f"one, {_status(undone)}: {_joined(undone.path())}")
        elif expected.compensation is not None and undone is None:
            yield Failure(at, "a compensation", "none was started")
        elif expected.compensation is not None and undone is not None:
            yield from check_final(expected.compensation, undone, at)
