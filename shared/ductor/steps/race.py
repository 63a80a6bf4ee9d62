"""`race`: a join that the first branch to succeed wins."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

import msgspec

from ductor.engine.behaviour import Plain
from ductor.engine.context import NodeContext
from ductor.engine.outcome import complete, fail
from ductor.model import transition as tr
from ductor.model.definition import Step
from ductor.model.errors import Violation
from ductor.model.json import JSON
from ductor.model.payload import NULL
from ductor.model.transition import Transition
from ductor.steps import reading
from ductor.steps.branches import all_failed, arrived, cancel_losers, entry_at, failures
from ductor.steps.spec import PLAIN_EDGES, Scope, fault, no_expressions, read_args

EDGES: Final = PLAIN_EDGES
CODE: Final = "RACE_SPEC_INVALID"

expressions = no_expressions


class Args(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """`cancel_losers`: whether the other branches are cancelled when one has won."""

    cancel_losers: bool = True


def parse_args(args: JSON) -> Args:
    return reading.parse(Args, args)


def validate(step: Step, scope: Scope) -> Iterator[Violation]:
    """A race needs branches to race."""
    _, violations = read_args(Args, step, CODE)
    yield from violations
    if len({edge.source_ref for edge in scope.incoming(step.ref)}) < 2:
        yield fault(step, CODE, "a race joins at least two branches; draw edges from the last step of each to it")


class RaceBehaviour(Plain):
    """The first branch whose edge is taken wins; with none left that could, the race has failed."""

    def compile(self, step: Step) -> Args:
        return parse_args(step.args)

    def needs(self, args: Any) -> int:
        return 1

    def start(self, ctx: NodeContext) -> Iterable[Transition]:
        first = arrived(ctx)[:1]
        if first:
            return self._won(ctx, first[0])
        failed = failures(ctx)
        if not failed:
            return (tr.NodeSkipped(ctx.id),)
        return fail(ctx, all_failed("RACE_FAILED", "no branch succeeded", failed))

    def _won(self, ctx: NodeContext, winner: int) -> Iterator[Transition]:
        entry = entry_at(ctx, winner)
        value = ctx.tick.value(entry.output if entry else NULL)
        output = {"winner": ctx.tick.graph.nodes[winner].ref, "output": value}
        yield from complete(ctx, ctx.tick.keep(output))
        args: Args = ctx.args
        if args.cancel_losers:
            yield from cancel_losers(ctx, (winner,))
