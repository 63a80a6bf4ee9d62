"""The AWS actions by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from pydantic import BaseModel

from ductor.actions.action import Action
from ductor.actions.aws import executions, functions, mail, messages, objects, tables
from ductor.actions.aws.access import AwsAccess
from ductor.actions.context import ActionContext
from ductor.model.json import JSON

Function = Callable[[Any, ActionContext], dict[str, JSON]]

_TIMEOUT_MS: Final = 120_000

_ACTIONS: Final[tuple[tuple[str, Callable[[AwsAccess], Function], type[BaseModel], str], ...]] = (
    ("lambda.invoke", functions.LambdaInvoke, functions.LambdaArgs, "Calls a Lambda function."),
    ("sqs.send", messages.SqsSend, messages.SqsArgs, "Sends a message to an SQS queue."),
    ("sns.publish", messages.SnsPublish, messages.SnsArgs, "Publishes a message to an SNS topic."),
    ("eventbridge.put_events", messages.PutEvents, messages.EventsArgs, "Puts events on an EventBridge bus."),
    ("s3.get_object", objects.GetObject, objects.GetObjectArgs, "Reads a small object from S3."),
    ("s3.put_object", objects.PutObject, objects.PutObjectArgs, "Writes a small object to S3."),
    ("dynamodb.get_item", tables.GetItem, tables.GetItemArgs, "Reads an item from a DynamoDB table."),
    ("dynamodb.put_item", tables.PutItem, tables.PutItemArgs, "Writes an item to a DynamoDB table."),
    ("dynamodb.update_item", tables.UpdateItem, tables.UpdateItemArgs, "Changes an item in a DynamoDB table."),
    ("email.send", mail.EmailSend, mail.EmailArgs, "Sends an email through Amazon SES."),
    (
        "stepfunctions.start_execution",
        executions.StartExecution,
        executions.ExecutionArgs,
        "Starts an execution of a Step Functions state machine.",
    ),
)


def actions(access: AwsAccess) -> tuple[Action, ...]:
    """All of them, on one set of clients."""
    return tuple(
        Action(
            name=name,
            function=make(access),
            args_model=model,
            timeout_ms=functions.TIMEOUT_MS if name == "lambda.invoke" else _TIMEOUT_MS,
            description=description,
        )
        for name, make, model, description in _ACTIONS
    )
