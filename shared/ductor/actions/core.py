"""Actions without any outside: give the args back, fail on demand, sleep. For trying definitions, and for tests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Final, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, create_model, model_validator

from ductor.actions.action import Action
from ductor.actions.context import ActionContext
from ductor.actions.errors import ActionError, AttemptCancelledError
from ductor.model.json import JSON

MAX_SLEEP_MS: Final = 900_000
"""The longest sleep, 15 minutes: what a worker on AWS Lambda can live. A wait step has no such limit."""

_BEAT_MS: Final = 1_000

DurationParser = Callable[[str], int | None]


def echo(args: dict[str, JSON], ctx: ActionContext) -> dict[str, JSON]:
    """Returns its args."""
    del ctx
    return args


class FailArgs(BaseModel):
    """`fail_first_n`: attempts up to this number fail, later ones succeed; None: all fail."""

    model_config = ConfigDict(strict=True)

    code: str = Field(default="FAILED", min_length=1, max_length=128)
    message: str = "failed on demand"
    retryable: bool = True
    fail_first_n: int | None = Field(default=None, ge=0)


def fail(args: FailArgs, ctx: ActionContext) -> dict[str, JSON]:
    """Fails with the given code and message."""
    if args.fail_first_n is not None and ctx.attempt > args.fail_first_n:
        return {"attempt": ctx.attempt}
    raise ActionError(args.code, args.message, args.retryable, {"attempt": ctx.attempt})


class SleepArgs(BaseModel):
    """How long: as a text (`2s`, `PT2S`) or in milliseconds, exactly one of the two."""

    model_config = ConfigDict(strict=True)

    duration: str | None = None
    duration_ms: int | None = Field(default=None, ge=0, le=MAX_SLEEP_MS)

    @model_validator(mode="after")
    def _one_of_two(self) -> Self:
        if (self.duration is None) == (self.duration_ms is None):
            raise ValueError("give duration or duration_ms, one of the two")
        return self


class _Sleep:
    """`core.sleep`, with the way to read a duration that the installation uses everywhere."""

    def __init__(self, parse_duration: DurationParser | None) -> None:
        self._parse_duration = parse_duration
        self.args_model = create_model(
            "SleepArgs", __base__=SleepArgs, duration=(Annotated[str | None, AfterValidator(self._checked)], None)
        )

    def __call__(self, args: SleepArgs, ctx: ActionContext) -> dict[str, JSON]:
        total = self._milliseconds(args)
        left = total - _already_slept(ctx.last_heartbeat, total)
        while left > 0:
            step = min(left, _BEAT_MS)
            if ctx.wait(step / 1_000):
                raise AttemptCancelledError("cancelled while sleeping")
            left -= step
            if left > 0:
                ctx.heartbeat({"slept_ms": total - left})
        return {"slept_ms": total}

    def _milliseconds(self, args: SleepArgs) -> int:
        return (args.duration_ms or 0) if args.duration is None else self._parsed(args.duration)

    def _checked(self, duration: str | None) -> str | None:
        if duration is not None:
            self._parsed(duration)
        return duration

    def _parsed(self, duration: str) -> int:
        if self._parse_duration is None:
            raise ValueError("this installation reads no texts here; give duration_ms")
        parsed = self._parse_duration(duration)
        if parsed is None:
            raise ValueError("must be a duration like 2s, 250ms or PT2S")
        if parsed > MAX_SLEEP_MS:
            raise ValueError(f"must be at most {MAX_SLEEP_MS // 60_000} minutes; a wait step waits longer")
        return parsed


def _already_slept(reported: JSON, total: int) -> int:
    """What an earlier delivery of this attempt had slept; a lost worker does not start the sleep over."""
    slept = reported.get("slept_ms") if isinstance(reported, dict) else None
    return min(slept, total) if isinstance(slept, int) and slept > 0 else 0


def actions(parse_duration: DurationParser | None) -> tuple[Action, ...]:
    """The actions of this module."""
    sleep = _Sleep(parse_duration)
    return (
        Action(name="core.echo", function=echo, blocking=False, description="Returns its args."),
        Action(
            name="core.fail",
            function=fail,
            args_model=FailArgs,
            blocking=False,
            description="Fails with the given code and message; with fail_first_n only the first attempts do.",
        ),
        Action(
            name="core.sleep",
            function=sleep,
            args_model=sleep.args_model,
            timeout_ms=MAX_SLEEP_MS + 60_000,
            description="Sleeps in the worker; a wait step is the durable way to wait.",
        ),
    )
