"""The args of `http.request`, and which answers they call a success."""

from __future__ import annotations

import re
from typing import Annotated, Final, Literal, Self

from pydantic import AfterValidator, BaseModel, BeforeValidator, Field, StrictBool, StrictInt, model_validator

from ductor.model.json import JSON, encode

DEFAULT_TIMEOUT_MS: Final = 30_000
MAX_TIMEOUT_MS: Final = 600_000
"""The longest exchange, 10 minutes."""

_HEADER_NAME: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,256}")
_HEADER_VALUE: Final = re.compile(r"[\t\x20-\x7e]{0,8192}")
# They frame the message or route it; ours to set.
_RESERVED_HEADERS: Final = frozenset(
    {
        "accept-encoding",
        "connection",
        "content-length",
        "expect",
        "host",
        "keep-alive",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
_STATUS: Final = re.compile(r"([1-5])xx|([1-5][0-9]{2})(?:-([1-5][0-9]{2}))?", re.IGNORECASE)

Scalar = StrictBool | int | float | str | None


def _upper(value: object) -> object:
    return value.upper() if isinstance(value, str) else value


def _sound_headers(headers: dict[str, str | int]) -> dict[str, str | int]:
    for name, value in headers.items():
        if _HEADER_NAME.fullmatch(name) is None:
            raise ValueError(f"{name[:60]!r} is no header name")
        if name.lower() in _RESERVED_HEADERS:
            raise ValueError(f"{name} is set by the exchange itself; leave it out")
        if _HEADER_VALUE.fullmatch(str(value)) is None:
            raise ValueError(
                f"the value of {name} must be printable ASCII without line breaks, at most 8192 characters"
            )
    if len({name.lower() for name in headers}) != len(headers):
        raise ValueError("a header is given twice")
    return headers


def _sound_statuses(rules: list[int | str]) -> list[int | str]:
    for rule in rules:
        if _STATUS.fullmatch(str(rule)) is None:
            raise ValueError("each must be a status like 200, a class like 2xx or a range like 200-204")
    return rules


def _listed(value: object) -> object:
    return value if isinstance(value, list) else [value]


class HttpArgs(BaseModel):
    """`json` or `body` (text), not both. `timeout_ms` is one limit over the whole exchange, redirects included.

    `expect_status`: which answers are a success; an expected redirect is returned and not followed.
    """

    method: Annotated[Literal["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"], BeforeValidator(_upper)] = (
        "GET"
    )
    url: str = Field(min_length=1, max_length=8_192)
    headers: Annotated[dict[str, str | StrictInt], AfterValidator(_sound_headers)] = {}
    query: dict[str, Scalar | list[Scalar]] = {}
    json_body: JSON = Field(default=None, validation_alias="json")
    body: str | None = None
    timeout_ms: int = Field(default=DEFAULT_TIMEOUT_MS, ge=1, le=MAX_TIMEOUT_MS)
    expect_status: Annotated[
        list[int | str], BeforeValidator(_listed), Field(min_length=1, max_length=50), AfterValidator(_sound_statuses)
    ] = ["2xx"]

    @model_validator(mode="after")
    def _one_body(self) -> Self:
        if self._has_json and self.body is not None:
            raise ValueError("give json or body, not both")
        return self

    @property
    def _has_json(self) -> bool:
        return "json_body" in self.model_fields_set

    def content(self) -> tuple[bytes, str]:
        """The bytes to send and their content type, both empty when there are none."""
        if self._has_json:
            return encode(self.json_body), "application/json"
        if self.body is not None:
            return self.body.encode(), "text/plain; charset=utf-8"
        return b"", ""

    def expects(self, status: int) -> bool:
        """Whether `status` is a success."""
        return any(_covers(str(rule), status) for rule in self.expect_status)


def _covers(rule: str, status: int) -> bool:
    match = _STATUS.fullmatch(rule)
    if match is None:
        return False
    family, low, high = match.groups()
    if family is not None:
        return status // 100 == int(family)
    return int(low) <= status <= int(high or low)
