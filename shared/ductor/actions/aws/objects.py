"""`s3.get_object` and `s3.put_object`: small objects, as JSON, text or base64. What is large stays in S3."""

from __future__ import annotations

import base64
from typing import Any, Final, Literal, Self

from pydantic import Field, model_validator

from ductor.actions.aws.access import AwsAccess
from ductor.actions.aws.errors import service_error, translated
from ductor.actions.aws.values import MARK, AwsArgs, Base64, body_fields, short_key
from ductor.actions.context import ActionContext
from ductor.actions.errors import ActionError
from ductor.model.json import JSON, encode

DEFAULT_BYTES: Final = 1_048_576
MAX_BYTES: Final = 3_670_016
"""Of an object that is read: its base64 must fit into the 5 MB of an output."""


class _ObjectArgs(AwsArgs):
    bucket: str = Field(min_length=3, max_length=255, description="Name of the bucket, or ARN of an access point.")
    key: str = Field(min_length=1, max_length=1_024, description="Name of the object.")


class GetObjectArgs(_ObjectArgs):
    """What `s3.get_object` takes."""

    version_id: str = Field(default="", max_length=1_024)
    form: Literal["auto", "json", "text", "base64"] = Field(
        default="auto", description="auto: JSON if the object says so, else text, else base64."
    )
    max_bytes: int = Field(default=DEFAULT_BYTES, ge=1, le=MAX_BYTES, description="A larger object fails the step.")


class GetObject:
    """The function behind `s3.get_object`."""

    def __init__(self, aws: AwsAccess) -> None:
        self._aws = aws

    def __call__(self, args: GetObjectArgs, ctx: ActionContext) -> dict[str, JSON]:
        """`body` or `body_base64`, and what S3 says of the object. Raises ActionError."""
        params: dict[str, Any] = {"Bucket": args.bucket, "Key": args.key}
        if args.version_id:
            params["VersionId"] = args.version_id
        answer = self._aws.call(ctx, "s3", "get_object", params, args.region)
        size, stream = int(answer["ContentLength"]), answer["Body"]
        if size > args.max_bytes:
            stream.close()
            message = f"the object has {size} bytes, over max_bytes ({args.max_bytes}); at most {MAX_BYTES} can be read"
            raise service_error("s3", "ObjectTooLarge", message, details={"bytes": size})
        with translated("s3", "get_object"):
            content: bytes = stream.read()
        kind = str(answer.get("ContentType", ""))
        output: dict[str, JSON] = {**body_fields(content, kind, args.form), "content_type": kind, "size": size}
        output |= {"etag": answer["ETag"], "metadata": answer.get("Metadata", {})}
        if "LastModified" in answer:
            output["last_modified"] = answer["LastModified"].isoformat().replace("+00:00", "Z")
        return {**output, "version_id": answer["VersionId"]} if "VersionId" in answer else output


class PutObjectArgs(_ObjectArgs):
    """What `s3.put_object` takes: exactly one of `body`, `json` and `body_base64`."""

    body: str | None = Field(default=None, description="A text.")
    json_body: JSON = Field(default=None, validation_alias="json", description="Any JSON.")
    body_base64: Base64 | None = Field(default=None, description="Bytes, in base64.")
    content_type: str = Field(default="", max_length=256, description="By default that of the body.")
    metadata: dict[str, str] = Field(default={}, max_length=50)
    if_absent: bool = Field(default=False, description="Fail with S3.PreconditionFailed when there is such an object.")
    if_match: str = Field(default="", max_length=128, description="Only replace the object with this etag.")

    @model_validator(mode="after")
    def _one_body(self) -> Self:
        given = [self.body is not None, "json_body" in self.model_fields_set, self.body_base64 is not None]
        if sum(given) != 1:
            raise ValueError("give exactly one of body, json and body_base64")
        if self.if_absent and self.if_match:
            raise ValueError("give if_absent or if_match, not both")
        return self

    def content(self) -> tuple[bytes, str]:
        """The bytes, and what they are."""
        if self.body is not None:
            return self.body.encode(), "text/plain; charset=utf-8"
        if self.body_base64 is not None:
            return base64.b64decode(self.body_base64), "application/octet-stream"
        return encode(self.json_body), "application/json"


class PutObject:
    """The function behind `s3.put_object`."""

    def __init__(self, aws: AwsAccess) -> None:
        self._aws = aws

    def __call__(self, args: PutObjectArgs, ctx: ActionContext) -> dict[str, JSON]:
        """`{etag}`, with `version_id` in a bucket that keeps versions. Raises ActionError."""
        content, kind = args.content()
        mark = short_key(ctx.idempotency_key) if ctx.idempotency_key else ""
        params: dict[str, Any] = {
            "Bucket": args.bucket,
            "Key": args.key,
            "Body": content,
            "ContentType": args.content_type or kind,
            "Metadata": {**args.metadata, **({MARK: mark} if mark else {})},
        }
        if args.if_absent:
            params["IfNoneMatch"] = "*"
        if args.if_match:
            params["IfMatch"] = args.if_match
        try:
            return _stored(self._aws.call(ctx, "s3", "put_object", params, args.region))
        except ActionError as fault:
            if fault.code != "S3.PreconditionFailed" or not mark:
                raise
            found = self._own(args, ctx, mark)
            if found is None:
                raise
            return found

    def _own(self, args: PutObjectArgs, ctx: ActionContext, mark: str) -> dict[str, JSON] | None:
        """The object that is in the way, if this very step put it there before and did not hear of it."""
        params = {"Bucket": args.bucket, "Key": args.key}
        try:
            answer = self._aws.call(ctx, "s3", "head_object", params, args.region)
        except ActionError as fault:
            if fault.retryable:
                raise
            return None
        return _stored(answer) if answer.get("Metadata", {}).get(MARK) == mark else None


def _stored(answer: dict[str, Any]) -> dict[str, JSON]:
    output: dict[str, JSON] = {"etag": answer["ETag"]}
    return {**output, "version_id": answer["VersionId"]} if "VersionId" in answer else output
