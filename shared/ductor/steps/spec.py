"""What the registry knows of a step type, and how a step's own rules see the rest of a definition."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Any, Final, Protocol, TypeVar

import msgspec

from ductor.model.definition import Edge, Step
from ductor.model.enums import EdgeType, StepType
from ductor.model.errors import Violation
from ductor.model.json import JSON
from ductor.steps import reading

Model = TypeVar("Model", bound=msgspec.Struct)

MAX_TIMEOUT_MS: Final = 9_223_372_036_854
"""The largest timeout of any kind: what fits 64 bits in nanoseconds (define and publish: Add a human approval gate)."""

COMMON_ROOTS: Final = frozenset({"TRIGGER", "VARS", "CONTEXT", "STEPS", "RUN"})
"""The roots that every expression of a step may read."""

WORK_EDGES: Final = frozenset({EdgeType.SUCCESS, EdgeType.ERROR, EdgeType.TIMEOUT, EdgeType.DONE, EdgeType.DEFAULT})
"""Edges of steps that work under a timeout."""

EVENT_EDGES: Final = frozenset({EdgeType.SUCCESS, EdgeType.TIMEOUT, EdgeType.ERROR, EdgeType.DONE})
"""Edges of steps that wait for events."""

PLAIN_EDGES: Final = frozenset({EdgeType.SUCCESS, EdgeType.ERROR, EdgeType.DONE})
"""Edges of steps that neither time out nor route."""


ArgsModel = type[msgspec.Struct]


class ExpressionKind(StrEnum):
    """How a field is evaluated."""

    VALUE = "value"
    CONDITION = "condition"
    TEMPLATE = "template"


class Expression(msgspec.Struct, frozen=True):
    """One evaluated field of a step. `path` is below the step (`args.where`).

    `source` is CEL text for VALUE and CONDITION (must give a boolean), any JSON value for TEMPLATE. `roots` are
    allowed on top of `COMMON_ROOTS`.
    """

    path: str
    source: JSON
    kind: ExpressionKind = ExpressionKind.VALUE
    roots: frozenset[str] = frozenset()


class Catalog(Protocol):
    """The actions that this installation can run."""

    def __contains__(self, name: str, /) -> bool: ...

    def nearest(self, name: str) -> str | None:
        """The known action name that is closest to an unknown one."""
        ...

    def validate_args(self, name: str, args: Mapping[str, JSON]) -> Iterable[tuple[str, str]]:
        """(path, what is wrong) for each fault of a known action's args. A value with a template is no fault."""
        ...

    def needs_connection(self, name: str) -> bool:
        """Whether a known action cannot run without a connection."""
        ...

    def connection_type(self, name: str) -> str:
        """The type of connection that a known action needs, empty when it needs none."""
        ...

    def default_args(self, name: str) -> dict[str, JSON]:
        """Templates for args of a known action that its author left out; empty for most actions."""
        ...


class Scope(Protocol):
    """What a step's own rules may ask of the definition around it."""

    @property
    def catalog(self) -> Catalog: ...

    def incoming(self, ref: str) -> Sequence[Edge]: ...

    def outgoing(self, ref: str) -> Sequence[Edge]: ...

    def type_of(self, ref: str) -> StepType | None: ...


class StepSpec(msgspec.Struct, frozen=True):
    """One step type. `args_model` is None where the args belong to something else (an action).

    `parse` gives the typed args of a validated step (raises ArgsInvalidError otherwise); `validate` yields every fault
    of its own, whatever the args hold; `expressions` never fails. `executable` is false while this release accepts the
    type in drafts but cannot run it.
    """

    type: StepType
    edges: frozenset[EdgeType]
    args_model: ArgsModel | None
    parse: Callable[[JSON], Any]
    validate: Callable[[Step, Scope], Iterator[Violation]]
    expressions: Callable[[Step], Iterator[Expression]]
    executable: bool = False


def read_args(model: type[Model], step: Step, code: str = "") -> tuple[Model | None, list[Violation]]:
    """The step's args as their model, or None and a violation per fault. Without a `code`: the general FIELD_ codes."""
    args, found = reading.read(model, step.args)
    return args, [fault(step, code or problem.code, problem.message, problem.path) for problem in found]


def fault(step: Step, code: str, message: str, path: str = "") -> Violation:
    """A violation in the step's args; `path` is below them."""
    return Violation(reading.joined(f"{step.ref}.args", path) if path else f"{step.ref}.args", code, message)


def texts(step: Step, roots: frozenset[str], *names: str) -> Iterator[Expression]:
    """The CEL fields among `names` that the args hold as text."""
    for name in names:
        source = arg(step, name)
        if isinstance(source, str):
            yield Expression(f"args.{name}", source, ExpressionKind.VALUE, roots)


def conditions(step: Step, roots: frozenset[str], *names: str) -> Iterator[Expression]:
    """The boolean CEL fields among `names` that the args hold as text."""
    for name in names:
        source = arg(step, name)
        if isinstance(source, str):
            yield Expression(f"args.{name}", source, ExpressionKind.CONDITION, roots)


def templates(step: Step, *names: str) -> Iterator[Expression]:
    """The templated fields among `names` that the args hold."""
    for name in names:
        source = arg(step, name)
        if source is not None:
            yield Expression(f"args.{name}", source, ExpressionKind.TEMPLATE)


def arg(step: Step, name: str) -> JSON:
    """One raw arg; None when it is absent or the args are not an object."""
    return step.args.get(name) if isinstance(step.args, dict) else None


def no_expressions(step: Step) -> Iterator[Expression]:
    """For types whose args hold nothing to evaluate."""
    del step
    return iter(())
