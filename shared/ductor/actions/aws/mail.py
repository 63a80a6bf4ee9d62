"""`email.send`: one message through Amazon SES, which knows no key of idempotency: a repetition is a second mail."""

from __future__ import annotations

from typing import Annotated, Any, Final, Self

from pydantic import AfterValidator, Field, model_validator

from ductor.actions.aws.access import AwsAccess
from ductor.actions.aws.values import MARK, AwsArgs, short_key
from ductor.actions.context import ActionContext
from ductor.model.json import JSON, encode

MAX_RECIPIENTS: Final = 50
_TAG_CHARS: Final = 64


def _address(value: str) -> str:
    # What else an address may be, SES says; a line break would begin another header.
    if "@" not in value or any(not char.isprintable() for char in value):
        raise ValueError("must be an address, like Ada <ada@example.com>")
    return value


def _one_line(value: str) -> str:
    if any(not char.isprintable() for char in value):
        raise ValueError("must be one line of printable characters")
    return value


Address = Annotated[str, Field(min_length=3, max_length=320), AfterValidator(_address)]
Addresses = Annotated[list[Address], Field(max_length=MAX_RECIPIENTS)]
Line = Annotated[str, Field(max_length=998), AfterValidator(_one_line)]


class EmailArgs(AwsArgs):
    """What `email.send` takes: `subject` with `text` or `html` or both, or a `template` with its `template_data`."""

    sender: Address = Field(validation_alias="from", description="An address or domain that SES has verified.")
    to: Addresses = Field(default=[])
    cc: Addresses = Field(default=[])
    bcc: Addresses = Field(default=[])
    reply_to: Addresses = Field(default=[])
    subject: Line = ""
    text: str | None = None
    html: str | None = None
    template: str = Field(default="", max_length=64, description="Name of a template of SES.")
    template_data: dict[str, JSON] = Field(default={})
    configuration_set: str = Field(default="", max_length=64)

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if not 1 <= len(self.to) + len(self.cc) + len(self.bcc) <= MAX_RECIPIENTS:
            raise ValueError(f"give 1 to {MAX_RECIPIENTS} recipients in to, cc and bcc together")
        said = self.subject != "" and (self.text is not None or self.html is not None)
        if said == bool(self.template) or (self.template and (self.subject or self.text or self.html)):
            raise ValueError("give subject with text or html, or a template")
        return self


class EmailSend:
    """The function behind `email.send`."""

    def __init__(self, aws: AwsAccess) -> None:
        self._aws = aws

    def __call__(self, args: EmailArgs, ctx: ActionContext) -> dict[str, JSON]:
        """`{message_id}`: SES has taken the message; whether it arrives is another matter. Raises ActionError."""
        lists = {"ToAddresses": args.to, "CcAddresses": args.cc, "BccAddresses": args.bcc}
        params: dict[str, Any] = {
            "FromEmailAddress": args.sender,
            "Destination": {name: found for name, found in lists.items() if found},
            "Content": _content(args),
        }
        if args.reply_to:
            params["ReplyToAddresses"] = args.reply_to
        if args.configuration_set:
            params["ConfigurationSetName"] = args.configuration_set
        if ctx.idempotency_key:
            params["EmailTags"] = [{"Name": MARK, "Value": short_key(ctx.idempotency_key, _TAG_CHARS)}]
        return {"message_id": self._aws.call(ctx, "sesv2", "send_email", params, args.region)["MessageId"]}


def _content(args: EmailArgs) -> dict[str, Any]:
    if args.template:
        data = encode(args.template_data).decode()
        return {"Template": {"TemplateName": args.template, "TemplateData": data}}
    parts = {"Text": args.text, "Html": args.html}
    body = {name: {"Data": text, "Charset": "UTF-8"} for name, text in parts.items() if text is not None}
    return {"Simple": {"Subject": {"Data": args.subject, "Charset": "UTF-8"}, "Body": body}}
