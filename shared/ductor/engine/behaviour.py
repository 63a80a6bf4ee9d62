"""What a step type must say about itself. The engine knows no step type by name; `steps` implements these."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Protocol

from ductor.model.command import Command, Registration
from ductor.model.definition import Step
from ductor.model.errors import StepError
from ductor.model.intent import Intent
from ductor.model.payload import NULL, Payload
from ductor.model.transition import Transition

if TYPE_CHECKING:
    from ductor.engine.context import NodeContext


class Behaviour(Protocol):
    """How nodes of one type act. All methods are pure; transitions are applied in the order given.

    `Plain` has the answers of a type that does not take part in something; derive from it. `speaks` says whether the
    type has registrations or commands of its own: asking the others would cost every transition. A type that
    `takes_signals` is told of each signal while it waits, and may leave it. The attempts of a `patient` type may take
    long to stop, so that one looks after them ever more rarely. A `resolvable` type may be resolved by an operator
    while an attempt of it is out.
    """

    speaks: bool
    takes_signals: bool
    patient: bool
    resolvable: bool

    def compile(self, step: Step) -> Any:
        """The step's args, parsed and with compiled expressions. Raises ValueError for args that validation refuses."""
        ...

    def needs(self, args: Any) -> int:
        """How many taken branches decide a node that does not wait for all of them; 0 = it waits. `args`: compiled."""
        ...

    def start(self, ctx: NodeContext) -> Iterable[Transition]:
        """The node is ready and its condition holds."""
        ...

    def item_ended(self, ctx: NodeContext, failed: tuple[int, StepError] | None) -> Iterable[Transition]:
        """An item of this scatter has ended, `failed` says which and why: whether the scatter has ended, too."""
        ...

    def item_output(self, args: Any, inside: NodeContext, arrived: list[int]) -> Payload:
        """The result of an item whose steps have ended; asked of the scatter's gather, with the gather's `args`.

        `inside` evaluates in the item's scope; `arrived` are the indexes of the steps from which an edge to the gather
        was taken. Raises ExpressionError.
        """
        ...

    def due(self, ctx: NodeContext) -> Iterable[Transition]:
        """The deadline of a parked node has passed."""
        ...

    def finished(self, ctx: NodeContext, intent: Intent) -> Iterable[Transition]:
        """The node's present attempt has ended as the intent says."""
        ...

    def refuses(self, ctx: NodeContext, intent: Intent) -> tuple[str, str] | None:
        """Why an operator's intent for this node (approve, reject, resolve, …) cannot apply: code and sentence."""
        ...

    def told(self, ctx: NodeContext, intent: Intent) -> Iterable[Transition]:
        """Something for this waiting node has arrived: a decision, an event, a child's end. Its generation matches."""
        ...

    def register(self, ctx: NodeContext, transition: Transition) -> Iterable[Registration]:
        """What must be findable before `transition` of this node is committed. Harmless if the commit fails."""
        ...

    def commands(self, ctx: NodeContext, transition: Transition) -> Iterable[Command]:
        """What to ask of the outside after `transition` of this node was committed, beyond what every node asks."""
        ...


class Plain:
    """A type that never parks, never hands anything out and listens to nobody."""

    speaks = False
    takes_signals = False
    patient = False
    resolvable = False

    def compile(self, step: Step) -> Any:
        return None

    def needs(self, args: Any) -> int:
        return 0

    def item_ended(self, ctx: NodeContext, failed: tuple[int, StepError] | None) -> Iterable[Transition]:
        return ()

    def item_output(self, args: Any, inside: NodeContext, arrived: list[int]) -> Payload:
        return NULL

    def due(self, ctx: NodeContext) -> Iterable[Transition]:
        return ()

    def finished(self, ctx: NodeContext, intent: Intent) -> Iterable[Transition]:
        return ()

    def refuses(self, ctx: NodeContext, intent: Intent) -> tuple[str, str] | None:
        return "STEP_TYPE_WRONG", f"a step of type {ctx.node.step.type.value} takes no {intent.kind.value}"

    def told(self, ctx: NodeContext, intent: Intent) -> Iterable[Transition]:
        return ()

    def register(self, ctx: NodeContext, transition: Transition) -> Iterable[Registration]:
        return ()

    def commands(self, ctx: NodeContext, transition: Transition) -> Iterable[Command]:
        return ()
