"""`dynamodb.get_item`, `put_item` and `update_item`: one item of a table. Numbers are never rounded on the way."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from pydantic import Field

from ductor.actions.aws.access import AwsAccess
from ductor.actions.aws.errors import service_error, translated
from ductor.actions.aws.values import AwsArgs, from_dynamodb, to_dynamodb, token, typed_bytes, typed_texts
from ductor.actions.context import ActionContext
from ductor.actions.errors import ActionError
from ductor.model.json import JSON

SERVICE: Final = "dynamodb"
_PASSING: Final = frozenset({"TransactionConflict", "ThrottlingError", "ProvisionedThroughputExceeded"})
_CODES: Final = {"ConditionalCheckFailed": "ConditionalCheckFailedException", "ValidationError": "ValidationException"}

Item = dict[str, JSON]
Names = dict[str, str]


class _TableArgs(AwsArgs):
    table: str = Field(min_length=1, max_length=1_024, pattern=r"^[A-Za-z0-9_.:/-]+$", description="Name or ARN.")
    typed: bool = Field(default=False, description='Values are in DynamoDB\'s own notation: {"S": "text"}.')

    @property
    def place(self) -> str:
        """The region that an ARN names."""
        return self.region or (self.table.split(":")[3] if self.table.startswith("arn:") else "")


class GetItemArgs(_TableArgs):
    """What `dynamodb.get_item` takes."""

    key: Item = Field(min_length=1, max_length=2, description="The item's primary key.")
    consistent: bool = Field(default=True, description="Read what was written last.")
    attributes: list[str] = Field(default=[], max_length=100, description="Only these; by default all.")


class _WriteArgs(_TableArgs):
    condition: str = Field(default="", max_length=4_096, description="A ConditionExpression.")
    names: Names = Field(default={}, max_length=100, description="ExpressionAttributeNames.")
    values: Item = Field(default={}, max_length=100, description="ExpressionAttributeValues.")


class PutItemArgs(_WriteArgs):
    """What `dynamodb.put_item` takes."""

    item: Item = Field(min_length=1, description="The whole item, its key included.")
    once: bool | None = Field(
        default=None, description="Whether a repetition within ten minutes does nothing; by default if conditional."
    )


class UpdateItemArgs(_WriteArgs):
    """What `dynamodb.update_item` takes."""

    key: Item = Field(min_length=1, max_length=2, description="The item's primary key.")
    update: str = Field(min_length=1, max_length=4_096, description="An UpdateExpression.")
    once: bool = Field(default=True, description="Whether a repetition within ten minutes does nothing.")
    return_item: bool = Field(default=False, description="Give the item as it is afterwards.")


class GetItem:
    """The function behind `dynamodb.get_item`."""

    def __init__(self, aws: AwsAccess) -> None:
        self._aws = aws

    def __call__(self, args: GetItemArgs, ctx: ActionContext) -> dict[str, JSON]:
        """`{found, item}`; the item is null when there is none. Raises ActionError."""
        params: dict[str, Any] = {
            "TableName": args.table,
            "Key": _typed(args.key, args.typed, "key"),
            "ConsistentRead": args.consistent,
        }
        if args.attributes:
            names = {f"#a{place}": name for place, name in enumerate(args.attributes)}
            params |= {"ProjectionExpression": ", ".join(names), "ExpressionAttributeNames": names}
        answer = self._aws.call(ctx, SERVICE, "get_item", params, args.place)
        return {"found": "Item" in answer, "item": _plain(answer.get("Item"), args.typed)}


class PutItem:
    """The function behind `dynamodb.put_item`."""

    def __init__(self, aws: AwsAccess) -> None:
        self._aws = aws

    def __call__(self, args: PutItemArgs, ctx: ActionContext) -> dict[str, JSON]:
        """`{written: true}`. Raises ActionError; `DynamoDB.ConditionalCheckFailedException` with `details.item`."""
        params = {"TableName": args.table, "Item": _typed(args.item, args.typed, "item"), **_expressions(args)}
        once = bool(args.condition) if args.once is None else args.once
        if once and ctx.idempotency_key:
            _once(self._aws, ctx, "Put", params, args)
        else:
            self._aws.call(ctx, SERVICE, "put_item", params, args.place)
        return {"written": True}


class UpdateItem:
    """The function behind `dynamodb.update_item`."""

    def __init__(self, aws: AwsAccess) -> None:
        self._aws = aws

    def __call__(self, args: UpdateItemArgs, ctx: ActionContext) -> dict[str, JSON]:
        """`{written: true}`, and `item` with `return_item`. Raises ActionError.

        With `once` the item is read after the update: a later change by somebody else may be in it.
        """
        key = _typed(args.key, args.typed, "key")
        params = {"TableName": args.table, "Key": key, "UpdateExpression": args.update, **_expressions(args)}
        if not args.once or not ctx.idempotency_key:
            asked = {"ReturnValues": "ALL_NEW"} if args.return_item else {}
            answer = self._aws.call(ctx, SERVICE, "update_item", params | asked, args.place)
            return _written(answer.get("Attributes"), args)
        _once(self._aws, ctx, "Update", params, args)
        if not args.return_item:
            return {"written": True}
        read = {"TableName": args.table, "Key": key, "ConsistentRead": True}
        return _written(self._aws.call(ctx, SERVICE, "get_item", read, args.place).get("Item"), args)


def _written(item: Mapping[str, Any] | None, args: UpdateItemArgs) -> dict[str, JSON]:
    return {"written": True, "item": _plain(item, args.typed)} if args.return_item else {"written": True}


def _once(aws: AwsAccess, ctx: ActionContext, kind: str, params: dict[str, Any], args: _WriteArgs) -> None:
    """One write in a transaction with a token: DynamoDB takes a repetition within ten minutes for done.

    A transaction is billed double.
    """
    asked = {**params, "ReturnValuesOnConditionCheckFailure": "ALL_OLD"}
    whole = {"TransactItems": [{kind: asked}], "ClientRequestToken": token(ctx.idempotency_key)}
    client = aws.client(ctx, SERVICE, args.place)
    with translated(SERVICE, "transact_write_items"):
        try:
            client.transact_write_items(**whole)
        except client.exceptions.TransactionCanceledException as fault:
            raise _cancelled(fault.response, args.typed) from None


def _cancelled(response: Mapping[str, Any], typed: bool) -> ActionError:
    reasons: list[dict[str, Any]] = response.get("CancellationReasons") or [{}]
    reason = next((one for one in reasons if one.get("Code") not in (None, "None")), {})
    own = str(reason.get("Code") or "TransactionCanceledException")
    details: dict[str, JSON] = {"operation": "TransactWriteItems", "code": own}
    if reason.get("Item"):
        details["item"] = _plain(reason["Item"], typed)
    message = str(reason.get("Message") or response.get("Error", {}).get("Message") or "the write was refused")
    return service_error(SERVICE, _CODES.get(own, own), message, retryable=own in _PASSING, details=details)


def _expressions(args: _WriteArgs) -> dict[str, Any]:
    found: dict[str, Any] = {"ConditionExpression": args.condition} if args.condition else {}
    if args.names:
        found["ExpressionAttributeNames"] = args.names
    if args.values:
        found["ExpressionAttributeValues"] = _typed(args.values, args.typed, "values")
    return found


def _typed(values: Item, typed: bool, path: str) -> dict[str, Any]:
    convert = typed_bytes if typed else to_dynamodb
    return {name: convert(value, f"{path}.{name}") for name, value in values.items()}


def _plain(item: Mapping[str, Any] | None, typed: bool) -> JSON:
    if item is None:
        return None
    convert = typed_texts if typed else from_dynamodb
    return {name: convert(value) for name, value in item.items()}
