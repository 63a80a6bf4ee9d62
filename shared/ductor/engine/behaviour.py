"""What a step type must say about itself. The engine knows no step type by name; `steps` implements these."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Protocol

from ductor.model.definition import Step
from ductor.model.intent import Intent
from ductor.model.transition import Transition

if TYPE_CHECKING:
    from ductor.engine.context import NodeContext


class Behaviour(Protocol):
    """How nodes of one type act. All methods are pure; transitions are applied in the order given."""

    def compile(self, step: Step) -> Any:
        """The step's args, parsed and with compiled expressions. Raises ValueError for args that validation refuses."""
        ...

    def start(self, ctx: NodeContext) -> Iterable[Transition]:
        """The node is ready and its condition holds."""
        ...

    def due(self, ctx: NodeContext) -> Iterable[Transition]:
        """The deadline of a parked node has passed."""
        ...

    def finished(self, ctx: NodeContext, intent: Intent) -> Iterable[Transition]:
        """The node's present attempt has ended as the intent says."""
        ...
