"""Actions that stand in for real ones: they succeed, fail, fail at first, are slow or return much, and are counted."""

from __future__ import annotations

from typing import Any, Final

from ductor.actions.action import Action
from ductor.actions.connection import Connection, Secret
from ductor.actions.context import ActionContext
from ductor.actions.errors import ActionError
from ductor.actions.registry import ActionRegistry
from ductor.model.attempt import AttemptTask
from ductor.model.json import JSON
from ductor.testing.ledger import Effect, Ledger

OK: Final = "double.ok"
FAIL_N: Final = "double.fail_n"
BOOM: Final = "double.boom"
SLOW: Final = "double.slow"
BIG: Final = "double.big"
SECRET: Final = "secret-of-"
NAMES: Final = (OK, FAIL_N, BOOM, SLOW, BIG)


class Doubles:
    """The doubles of one world. Every execution leaves an effect in the ledger.

    All take `{"v": anything}`. `ok` returns it with a number that no other execution has; `fail_n` fails its attempts
    up to `n`; `boom` always fails, with `code` and `retryable`; `slow` takes `ms`; `big` returns `bytes` more.
    """

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self.takes_ms = 0

    def registry(self) -> ActionRegistry:
        return ActionRegistry(Action(name=name, function=self._function(name)) for name in NAMES)

    def _function(self, name: str) -> Any:
        def run(args: dict[str, JSON], ctx: ActionContext) -> dict[str, JSON]:
            return self._run(name, args, ctx)

        return run

    def _run(self, name: str, args: dict[str, Any], ctx: ActionContext) -> dict[str, JSON]:
        number = self._ledger.tick()
        self.takes_ms = int(args.get("ms", 0)) if name == SLOW else 0
        failed = name == BOOM or (name == FAIL_N and ctx.attempt <= int(args.get("n", 1)))
        output: dict[str, JSON] | None = None
        if not failed:
            output = {"v": args.get("v"), "number": number}
            if name == BIG:
                output["fill"] = "x" * int(args.get("bytes", 0))
        self._ledger.effects.append(Effect(ctx.run_id, ctx.node, ctx.attempt, ctx.deliveries, output, number))
        if output is None:
            raise ActionError(str(args.get("code", "BOOM")), "failed on demand", bool(args.get("retryable", True)))
        return output


class AnyConnection:
    """Whatever a step names is there, with a secret of its own."""

    def resolve(self, task: AttemptTask) -> Connection | None:
        ref = task.connection_ref
        return Connection(id=ref, slug=ref, type="double", secrets={"token": Secret(f"{SECRET}{ref}")}) if ref else None
