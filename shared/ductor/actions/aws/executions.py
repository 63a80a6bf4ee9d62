"""`stepfunctions.start_execution`: start a state machine and go on; it does not wait for the end."""

from __future__ import annotations

from typing import Any, Final

from pydantic import Field

from ductor.actions.aws.access import AwsAccess
from ductor.actions.aws.values import AwsArgs, short_key, within
from ductor.actions.context import ActionContext
from ductor.actions.errors import ActionError
from ductor.model.json import JSON, encode

MAX_BYTES: Final = 262_144
_EXISTS: Final = "StepFunctions.ExecutionAlreadyExists"


class ExecutionArgs(AwsArgs):
    """What `stepfunctions.start_execution` takes."""

    state_machine_arn: str = Field(
        max_length=256,
        pattern=r"^arn:[\w-]+:states:[\w-]+:[0-9]{12}:stateMachine:[\w:.-]+$",
        description="A state machine, its version or alias.",
    )
    input: JSON = Field(default={}, description="Any JSON.")
    name: str = Field(
        default="", max_length=80, pattern=r"^[\w-]*$", description="Of the execution; by default of the step."
    )


class StartExecution:
    """The function behind `stepfunctions.start_execution`."""

    def __init__(self, aws: AwsAccess) -> None:
        self._aws = aws

    def __call__(self, args: ExecutionArgs, ctx: ActionContext) -> dict[str, JSON]:
        """`{execution_arn, name}`. Raises ActionError.

        A standard state machine starts once per name. An express one knows no names: a repetition runs twice.
        """
        name = args.name or (f"ductor-{short_key(ctx.idempotency_key)}" if ctx.idempotency_key else "")
        params: dict[str, Any] = {
            "stateMachineArn": args.state_machine_arn,
            "input": within("the input", encode(args.input).decode(), MAX_BYTES),
        }
        if name:
            params["name"] = name
        region = args.region or args.state_machine_arn.split(":")[3]
        try:
            answer = self._aws.call(ctx, "stepfunctions", "start_execution", params, region)
        except ActionError as fault:
            # Under the step's own name only this step can have started it: an earlier attempt that was not heard of.
            if fault.code != _EXISTS or args.name:
                raise
            return {"execution_arn": _execution_arn(args.state_machine_arn, name), "name": name}
        arn = str(answer["executionArn"])
        return {"execution_arn": arn, "name": arn.rsplit(":", 1)[1]}


def _execution_arn(machine: str, name: str) -> str:
    """Without the version or alias, which is not part of an execution's name."""
    parts = machine.split(":")
    return ":".join([*parts[:5], "execution", parts[6], name])
