"""Values on their way to and from AWS: JSON, text and bytes, keys of idempotency, and DynamoDB's notation. Pure."""

from __future__ import annotations

import base64
import binascii
import hashlib
import uuid
from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from typing import Annotated, Any, Final

from pydantic import AfterValidator, BaseModel, Field

from ductor.actions.aws.errors import too_large
from ductor.actions.errors import ActionError
from ductor.actions.exact import NotExactError, exact
from ductor.model.json import JSON, decode, encode

MARK: Final = "ductor-idempotency-key"
"""The attribute, metadata entry or tag with the step's idempotency key, where the service has no field for it."""

_REGION: Final = r"^([a-z]{2,3}(-[a-z]+)+-[0-9]{1,2})?$"
_INT_MIN: Final = -(1 << 63)
_INT_MAX: Final = (1 << 64) - 1
_MAX_DIGITS: Final = 38
_MAX_EXPONENT: Final = 125
_MIN_EXPONENT: Final = -130


class AwsArgs(BaseModel):
    """What all AWS actions take."""

    region: str = Field(default="", pattern=_REGION, description="Where to call; by default where the process runs.")


def _decodable(text: str | None) -> str | None:
    if text is not None:
        try:
            base64.b64decode(text, validate=True)
        except (binascii.Error, ValueError):
            raise ValueError("must be base64") from None
    return text


Base64 = Annotated[str, AfterValidator(_decodable)]


def message_text(value: JSON) -> str:
    """A text as it is, anything else as JSON."""
    return value if isinstance(value, str) else encode(value).decode()


def within(what: str, text: str, limit: int) -> str:
    """`text`. Raises ActionError `PAYLOAD_TOO_LARGE` (not retryable) when it has more than `limit` bytes."""
    size = len(text.encode())
    if size > limit:
        raise too_large(what, size, limit)
    return text


def body_fields(content: bytes, content_type: str, form: str = "auto") -> dict[str, JSON]:
    """`body`: JSON where it is said to be, else text; `body_base64` for what is no text. `form` asks for one."""
    if form == "base64":
        return {"body_base64": base64.b64encode(content).decode("ascii")}
    try:
        text = content.decode()
    except UnicodeDecodeError:
        if form != "auto":
            message = "the content is no UTF-8 text; read it with form: base64"
            raise ActionError("CONTENT_INVALID", message, retryable=False) from None
        return body_fields(content, content_type, "base64")
    kind = content_type.partition(";")[0].strip().lower()
    if form == "text" or (form == "auto" and kind != "application/json" and not kind.endswith("+json")):
        return {"body": text}
    try:
        return {"body": exact(decode(content), "body")[0]}
    except (NotExactError, ValueError, RecursionError) as fault:
        if form == "json":
            message = f"the content is no JSON that can be held exactly: {fault}"
            raise ActionError("CONTENT_INVALID", message, retryable=False) from None
        return {"body": text}


def short_key(key: str, size: int = 64) -> str:
    """A stable name for an idempotency key, of letters and digits, for fields that take no other characters."""
    return hashlib.sha256(key.encode()).hexdigest()[:size]


def token(key: str) -> str:
    """A client token of 36 characters for an idempotency key."""
    return str(uuid.UUID(short_key(key, 32)))


def to_dynamodb(value: JSON, path: str) -> dict[str, Any]:
    """A JSON value in DynamoDB's notation. Numbers keep every digit that JSON gave them."""
    if value is None:
        return {"NULL": True}
    if isinstance(value, bool):
        return {"BOOL": value}
    if isinstance(value, str):
        return {"S": value}
    if isinstance(value, int | float):
        return {"N": _number(value, path)}
    if isinstance(value, list):
        return {"L": [to_dynamodb(item, f"{path}[{place}]") for place, item in enumerate(value)]}
    return {"M": {name: to_dynamodb(item, f"{path}.{name}") for name, item in value.items()}}


def _number(value: int | float, path: str) -> str:
    # The shortest text that gives the same float again: what stands in the JSON, not what binary made of it.
    exact_value = Decimal(repr(value))
    digits, exponent = exact_value.as_tuple().digits, exact_value.adjusted()
    if len(digits) > _MAX_DIGITS or (exact_value and not _MIN_EXPONENT <= exponent <= _MAX_EXPONENT):
        message = f"{path}: DynamoDB holds numbers of 38 digits from 1E-130 to 1E+125; write this one as a string"
        raise ActionError("ACTION_ARGS_INVALID", message, retryable=False)
    return str(exact_value)


def from_dynamodb(typed: Mapping[str, Any]) -> JSON:
    """The JSON of a value in DynamoDB's notation.

    Sets become sorted lists, bytes base64. A number that JSON would round comes as the text of its digits.
    """
    ((kind, value),) = typed.items()
    if kind == "M":
        return {name: from_dynamodb(item) for name, item in value.items()}
    if kind == "L":
        return [from_dynamodb(item) for item in value]
    if kind == "N":
        return _json_number(str(value))
    if kind == "NS":
        return [_json_number(text) for text in sorted(map(str, value), key=Decimal)]
    if kind in ("B", "BS"):
        texts = [base64.b64encode(bytes(item)).decode("ascii") for item in (value if kind == "BS" else [value])]
        return sorted(texts) if kind == "BS" else texts[0]
    if kind == "SS":
        return sorted(value)
    return None if kind == "NULL" else value


def _json_number(text: str) -> JSON:
    value = Decimal(text)
    if value == value.to_integral_value() and value.adjusted() < _MAX_DIGITS:
        whole = int(value)
        return whole if _INT_MIN <= whole <= _INT_MAX else text
    short = float(value)
    return short if Decimal(repr(short)) == value else text


def typed_bytes(value: JSON, path: str) -> JSON:
    """A value in DynamoDB's notation, with its base64 texts as bytes, as the vendor's library has it."""
    if not isinstance(value, dict) or len(value) != 1:
        raise _not_typed(path)
    ((kind, inner),) = value.items()
    try:
        if kind == "B":
            return {"B": base64.b64decode(inner, validate=True)}
        if kind == "BS":
            return {"BS": [base64.b64decode(item, validate=True) for item in inner]}
        if kind == "N":
            return {"N": str(Decimal(str(inner)))}
    except (binascii.Error, ValueError, TypeError, InvalidOperation):
        raise _not_typed(path) from None
    if kind == "M" and isinstance(inner, dict):
        return {"M": {name: typed_bytes(item, f"{path}.{name}") for name, item in inner.items()}}
    if kind == "L" and isinstance(inner, list):
        return {"L": [typed_bytes(item, f"{path}[{place}]") for place, item in enumerate(inner)]}
    return value


def typed_texts(typed: Mapping[str, Any]) -> JSON:
    """A value in DynamoDB's notation as JSON, with its bytes as base64."""
    ((kind, value),) = typed.items()
    if kind == "M":
        return {"M": {name: typed_texts(item) for name, item in value.items()}}
    if kind == "L":
        return {"L": [typed_texts(item) for item in value]}
    if kind in ("B", "BS"):
        return {kind: from_dynamodb(typed)}
    return {kind: list(value) if isinstance(value, list | set) else value}


def _not_typed(path: str) -> ActionError:
    message = f'{path}: with typed: true a value is one like {{"S": "text"}}, {{"N": "1.5"}} or {{"B": "<base64>"}}'
    return ActionError("ACTION_ARGS_INVALID", message, retryable=False)
