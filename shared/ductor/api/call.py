"""One request as routes see it: who asks, for what, with which body. Nothing of the transport beyond this point."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar
from urllib.parse import parse_qsl

from pydantic import BaseModel, ValidationError

from ductor.api.errors import body_violations, media_type_unsupported
from ductor.api.json_reader import read_object, too_large
from ductor.api.models.common import Metadata, rfc3339
from ductor.app.access import Caller
from ductor.app.refusals import invalid
from ductor.model.causation import HEADER
from ductor.model.errors import Violation
from ductor.model.json import JSON
from ductor.ports import Clock, Ids

GONE: Final = "ductor.gone"
"""In an event of the local gateway: asks whether the client has hung up."""

_MAX_BASE64: Final = 8 * 1024 * 1024 + 8
_MAX_QUERY: Final = 16_384
_MAX_QUERY_FIELDS: Final = 200
_TRACEPARENT: Final = re.compile(r"[0-9a-f]{2}-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}")
_AMAZON_TRACE: Final = re.compile(r"(?:^|;)\s*Root=(1-[0-9a-fA-F]{8}-[0-9a-fA-F]{24})")
_MAX_DIGITS: Final = 6
_PRINTABLE: Final = re.compile(r"[\x21-\x7e]{1,128}")

Model = TypeVar("Model", bound=BaseModel)


class Call:
    """A request. `ids` are the path parameters; `caller` is set before a route that needs one is entered."""

    __slots__ = ("_clock", "_event", "_query", "caller", "headers", "ids", "method", "path", "request_id", "trace_id")

    caller: Caller

    def __init__(self, event: Mapping[str, Any], ids: Mapping[str, str], clock: Clock, fresh: Ids) -> None:
        self._event = event
        self._clock = clock
        self._query: dict[str, list[str]] | None = None
        self.ids = ids
        self.method = str(((event.get("requestContext") or {}).get("http") or {}).get("method", ""))
        self.path = str(event.get("rawPath", ""))
        self.headers: Mapping[str, str] = event.get("headers") or {}
        given = (event.get("requestContext") or {}).get("requestId")
        self.request_id = given if isinstance(given, str) and _PRINTABLE.fullmatch(given) else f"req-{fresh.uuid()}"
        self.trace_id = _trace_id(self.headers) or f"trace-{fresh.uuid()}"

    @property
    def depth(self) -> int | None:
        """The causation depth of the run that sends this request by an action; None when no run does."""
        told = self.headers.get(HEADER)
        if told is None:
            return None
        if not told.isascii() or not told.isdecimal() or len(told) > _MAX_DIGITS:
            raise invalid("FIELD_INVALID", f"the header {HEADER} is a whole number; runs set it by themselves", HEADER)
        return int(told)

    def gone(self) -> bool:
        """Whether the client is known to wait no longer; a gateway that cannot tell says nothing."""
        left: Callable[[], bool] | None = self._event.get(GONE)
        return left is not None and left()

    def metadata(self) -> Metadata:
        return Metadata.model_construct(
            trace_id=self.trace_id, request_id=self.request_id, fetched_at=rfc3339(self._clock.now_ms()) or ""
        )

    def document(self) -> dict[str, JSON]:
        """The body as a JSON object; absent is `{}`. Raises RefusedError; HttpRefusedError for another media type."""
        data = self._body()
        if data and not _is_json(self.headers.get("content-type", "")):
            raise media_type_unsupported()
        return read_object(data)

    def body(self, model: type[Model]) -> Model:
        """The body as `model`, or a refusal that lists all of its faults."""
        try:
            return model.model_validate(document := self.document())
        except ValidationError as error:
            raise body_violations(error, model, document) from None

    def query(self, *names: str) -> Query:
        """The query string, which may only hold these names (a trailing `.` allows any name that starts so)."""
        if self._query is None:
            self._query = _parse_query(self._event.get("rawQueryString") or "")
        return Query(self._query, names)

    def _body(self) -> bytes:
        body = self._event.get("body") or ""
        if not self._event.get("isBase64Encoded"):
            # A lone surrogate cannot be UTF-8; passed on as it is, the JSON reader refuses it.
            return str(body).encode("utf-8", "surrogatepass")
        if len(body) > _MAX_BASE64:
            raise too_large()
        try:
            return base64.b64decode(body)
        except (binascii.Error, ValueError):
            raise invalid("JSON_INVALID", "the body cannot be decoded", "body") from None


class Query:
    """Parameters of a query string, read strictly: one value each unless asked for all, no unknown names."""

    def __init__(self, values: Mapping[str, list[str]], names: tuple[str, ...]) -> None:
        self._values = values
        prefixes = tuple(name for name in names if name.endswith("."))
        for name in values:
            if name not in names and not (prefixes and name.startswith(prefixes)):
                known = ", ".join(names) or "none"
                raise invalid("FIELD_UNKNOWN", f"there is no parameter {name[:100]!r} here; known: {known}", name)

    def text(self, name: str) -> str | None:
        """The value, None when absent or empty."""
        found = self._values.get(name) or [""]
        if len(found) > 1:
            raise invalid("FIELD_INVALID", "give this parameter once", name)
        return found[0] or None

    def pairs(self) -> list[tuple[str, str]]:
        """All (name, value) pairs whose value is not empty."""
        return [(name, value) for name, values in self._values.items() for value in values if value]

    def texts(self, name: str) -> tuple[str, ...]:
        """All values; each may itself be a list with commas."""
        return tuple(part for value in self._values.get(name, ()) for part in value.split(",") if part)

    def integer(self, name: str) -> int | None:
        text = self.text(name)
        if text is None:
            return None
        if not (text.isascii() and text.isdigit() and len(text) <= 18):
            raise invalid("FIELD_INVALID", "this parameter is a whole number", name)
        return int(text)


def violation_items(found: tuple[Violation, ...], build: Callable[..., Model]) -> list[Model]:
    """Violations as models with `field`, `code`, `message` and `severity`."""
    return [
        build(field=item.field, code=item.code, message=item.message, severity=item.severity.value) for item in found
    ]


def _parse_query(raw: str) -> dict[str, list[str]]:
    if len(raw) > _MAX_QUERY:
        raise invalid("FIELD_INVALID", f"a query string may have at most {_MAX_QUERY} characters", "query")
    found: dict[str, list[str]] = {}
    try:
        pairs = parse_qsl(raw, keep_blank_values=True, errors="replace", max_num_fields=_MAX_QUERY_FIELDS)
    except ValueError:
        raise invalid("FIELD_INVALID", f"a query string may have at most {_MAX_QUERY_FIELDS} fields", "query") from None
    for name, value in pairs:
        found.setdefault(name, []).append(value)
    return found


def _is_json(content_type: str) -> bool:
    """No content type counts as JSON: the API speaks nothing else."""
    kind = content_type.partition(";")[0].strip().lower()
    return kind in {"", "application/json"} or (kind.startswith("application/") and kind.endswith("+json"))


def _trace_id(headers: Mapping[str, str]) -> str:
    found = _TRACEPARENT.fullmatch(headers.get("traceparent", ""))
    if found is None:
        found = _AMAZON_TRACE.search(headers.get("x-amzn-trace-id", ""))
    return found[1] if found else ""
