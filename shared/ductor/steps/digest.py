"""`digest`: the arrivals of many runs with one key become one; the leader goes on, the others end as merged.

Who leads, and what is in a batch, is decided by conditional writes on rows that the runs share (`app.digests`). Here
stands only what a run makes of what it is told.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Annotated, Final

import msgspec

from ductor.engine.behaviour import Plain
from ductor.engine.context import NodeContext
from ductor.engine.outcome import complete, ending, fail
from ductor.expressions import ExpressionError, Template, compile_template
from ductor.model import transition as tr
from ductor.model.command import AskDigest, CloseDigest, Command, LeaveDigest, YieldDigest
from ductor.model.definition import Step
from ductor.model.digest import DigestWait, Phase, Role
from ductor.model.enums import NodeStatus, RunStatus
from ductor.model.errors import StepError, Violation
from ductor.model.intent import Intent, IntentKind
from ductor.model.json import JSON, encode
from ductor.model.payload import Payload
from ductor.model.transition import Transition
from ductor.model.waiting import MAX_KEY_CHARS
from ductor.steps import reading
from ductor.steps.duration import parse_duration
from ductor.steps.spec import PLAIN_EDGES, Expression, Scope, fault, read_args, templates
from ductor.steps.wait import duration_problem

EDGES: Final = PLAIN_EDGES
CODE: Final = "DIGEST_SPEC_INVALID"

MAX_ARRIVALS: Final = 10_000
"""Arrivals in one digest, also where no `max_count` is given: the next one opens another."""

MAX_ARRIVAL_BYTES: Final = 262_144
CHECK_MS: Final = 60_000
"""How soon a run in a digest first looks whether its leader still lives; doubles from there."""

INLINE_BYTES: Final = 400
EVERYTHING: Final = "${{ TRIGGER.payload }}"


class Args(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """`digest_key`, `dedup_key` and `arrival` (what each run contributes; default TRIGGER.payload) are templates.

    Either `window` (a fixed duration from the first arrival), or `max_wait` (a duration) together with `max_count`
    (closes at so many arrivals, at the latest after `max_wait`).
    """

    digest_key: Annotated[str, msgspec.Meta(min_length=1)]
    window: str | None = None
    max_wait: str | None = None
    max_count: Annotated[int, msgspec.Meta(ge=1, le=MAX_ARRIVALS)] | None = None
    dedup_key: str = ""
    arrival: JSON = None


def parse_args(args: JSON) -> Args:
    return reading.parse(Args, args)


def validate(step: Step, scope: Scope) -> Iterator[Violation]:
    """Exactly one way to close, with well-formed durations."""
    del scope
    args, violations = read_args(Args, step, CODE)
    yield from violations
    if args is None:
        return
    counted = args.max_wait is not None and args.max_count is not None
    partly = args.max_wait is not None or args.max_count is not None
    if (args.window is not None) == partly or partly != counted:
        yield fault(step, CODE, "give either `window`, or both `max_wait` and `max_count`")
    for name in ("window", "max_wait"):
        text = getattr(args, name)
        if text is not None and (problem := duration_problem(text)):
            yield fault(step, CODE, problem, name)


def expressions(step: Step) -> Iterator[Expression]:
    return templates(step, "digest_key", "dedup_key", "arrival")


class Plan(msgspec.Struct, frozen=True):
    """The compiled step. `wait_ms` is how long a window that this run opens stays open."""

    key: Template
    dedup: Template | None
    arrival: Template
    wait_ms: int
    most: int


class _InvalidError(ValueError):
    """An arg was rendered to what it cannot be."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.error = StepError(code, message, retryable=False)


class DigestBehaviour(Plain):
    """Joins after its commit, waits, and is told what its part is.

    The leader commits that it closes before anybody closes the window, and completes with exactly the members of the
    closed window. Only once that is committed the others hear of it and end.
    """

    speaks = True

    def compile(self, step: Step) -> Plan:
        args = parse_args(step.args)
        return Plan(
            key=compile_template(args.digest_key),
            dedup=compile_template(args.dedup_key) if args.dedup_key else None,
            arrival=compile_template(EVERYTHING if args.arrival is None else args.arrival),
            wait_ms=parse_duration(args.window or args.max_wait or "") or 0,
            most=args.max_count or MAX_ARRIVALS,
        )

    def start(self, ctx: NodeContext) -> Iterable[Transition]:
        try:
            wait = _wait(ctx)
        except _InvalidError as wrong:
            return fail(ctx, wrong.error)
        except ExpressionError as fault:
            return fail(ctx, StepError(fault.code, fault.message, retryable=False))
        return (tr.NodeParked(ctx.id, ctx.entry.generation + 1, 0, _kept(ctx, wait), ctx.now + CHECK_MS, CHECK_MS),)

    def due(self, ctx: NodeContext) -> Iterable[Transition]:
        """The window's time is up, or the run was merged while it was paused."""
        wait = wait_of(ctx, ctx.entry.input)
        if wait.phase is Phase.MERGED:
            return _merge(ctx, wait, wait.into)
        if wait.phase is not Phase.LEADING:
            return ()
        kept = _kept(ctx, msgspec.structs.replace(wait, phase=Phase.CLOSING))
        return (tr.NodeParked(ctx.id, ctx.entry.generation, 0, kept, ctx.now + CHECK_MS, CHECK_MS),)

    def told(self, ctx: NodeContext, intent: Intent) -> Iterable[Transition]:
        wait = wait_of(ctx, ctx.entry.input)
        if wait.phase is Phase.MERGED:
            return ()
        if intent.kind is IntentKind.DIGEST_ARRIVAL:
            return _follow(ctx, wait, msgspec.convert(intent.body, Role))
        if intent.kind is not IntentKind.DIGEST_CLOSED:
            return ()
        into = intent.body["into"]
        return _merge(ctx, wait, into) if into else complete(ctx, intent.output)

    def commands(self, ctx: NodeContext, transition: Transition) -> Iterable[Command]:
        node, generation = ctx.id, ctx.entry.generation
        if isinstance(transition, _ENDS):
            delivered = isinstance(transition, tr.NodeCompleted) and transition.error is None
            if generation:
                yield LeaveDigest(node, generation, delivered)
        elif ctx.entry.status is NodeStatus.WAITING:
            yield from _asked(ctx, transition)


_ENDS: Final = (tr.NodeCompleted, tr.NodeFailed, tr.NodeSkipped, tr.NodeCancelled)


def _asked(ctx: NodeContext, transition: Transition) -> Iterator[Command]:
    """What a run that waits in a digest asks of the rows."""
    node, generation = ctx.id, ctx.entry.generation
    paused = ctx.tick.state.status is RunStatus.PAUSED
    match transition:
        case tr.NodeParked(_, parked, _, kept) if parked == generation:
            phase = wait_of(ctx, kept).phase
            if phase is Phase.JOINING:
                yield AskDigest(node, generation)
            elif phase is Phase.CLOSING:
                yield CloseDigest(node, generation)
            elif phase is Phase.LEADING and paused:
                yield YieldDigest(node, generation)
        case tr.NodeChecked():
            closing = wait_of(ctx, ctx.entry.input).phase is Phase.CLOSING
            yield CloseDigest(node, generation) if closing else AskDigest(node, generation)
        case tr.RunPaused():
            yield YieldDigest(node, generation)
        case tr.RunResumed():
            yield AskDigest(node, generation)
        case _:
            pass


def wait_of(ctx: NodeContext, kept: Payload) -> DigestWait:
    """The wait in a node's input."""
    return msgspec.convert(ctx.tick.value(kept), DigestWait)


def _wait(ctx: NodeContext) -> DigestWait:
    """What this run brings. Raises ExpressionError, _InvalidError."""
    plan: Plan = ctx.args
    key = _text(ctx.render(plan.key), "digest_key")
    dedup = None if plan.dedup is None else ctx.render(plan.dedup)
    arrival = ctx.render(plan.arrival)
    data = encode(arrival)
    size = len(data)
    if size > MAX_ARRIVAL_BYTES:
        message = f"the arrival has {size} bytes, at most {MAX_ARRIVAL_BYTES} fit; contribute a reference to the data"
        raise _InvalidError("DIGEST_ARRIVAL_TOO_LARGE", message)
    return DigestWait(
        key=key,
        wait_ms=plan.wait_ms,
        most=plan.most,
        dedup="" if dedup in (None, "") else _text(dedup, "dedup_key"),
        arrival=ctx.tick.keep(arrival, data=data),
        size=size,
    )


def _text(value: JSON, name: str) -> str:
    """A rendered key: text, or a number."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        value = msgspec.json.encode(value).decode()
    if not isinstance(value, str) or not 1 <= len(value) <= MAX_KEY_CHARS:
        message = f"{name} is a number, or text of 1 to {MAX_KEY_CHARS} characters"
        raise _InvalidError("DIGEST_KEY_INVALID", message)
    return value


def _kept(ctx: NodeContext, wait: DigestWait) -> Payload:
    return ctx.tick.keep(msgspec.to_builtins(wait), INLINE_BYTES)


def _changed(ctx: NodeContext, wait: DigestWait, deadline: int) -> Transition:
    entry = ctx.entry
    return tr.NodeParked(ctx.id, entry.generation, deadline, _kept(ctx, wait), entry.check_at, entry.check_every)


def _follow(ctx: NodeContext, wait: DigestWait, role: Role) -> Iterator[Transition]:
    """The run leads, or it does not. News of a leadership that has changed since are old."""
    if role.term < wait.term:
        return
    known = role.term == wait.term
    if known and (wait.phase is Phase.CLOSING or (wait.phase is Phase.MEMBER and not role.lead)):
        return
    phase = Phase.LEADING if role.lead else Phase.MEMBER
    deadline = (ctx.now if role.full else max(role.closes_at, ctx.now)) if role.lead else 0
    if known and phase is wait.phase and deadline >= ctx.entry.deadline:
        return
    told = msgspec.structs.replace(wait, phase=phase, term=role.term, closes_at=role.closes_at)
    yield _changed(ctx, told, deadline)


def _merge(ctx: NodeContext, wait: DigestWait, into: str) -> Iterable[Transition]:
    """Another run has the arrival, and goes on for this one. A paused run ends when it is resumed."""
    if ctx.tick.state.status is RunStatus.PAUSED:
        merged = msgspec.structs.replace(wait, phase=Phase.MERGED, into=into)
        return (_changed(ctx, merged, ctx.now),)
    return ending(ctx.tick, RunStatus.MERGED, None, f"merged into run {into}", into)
