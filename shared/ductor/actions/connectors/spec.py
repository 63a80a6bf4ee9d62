"""What a connector file says: where the system is, how to sign in, its operations. Data only; it calls nothing."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final, Literal

import msgspec

from ductor.actions.errors import ActionLoadError
from ductor.model.json import JSON

_NAME: Final = re.compile(r"[a-z][a-z0-9_]{0,62}")
_OPERATION: Final = re.compile(r"[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)*")


class Field(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One arg of an operation or one setting of a connection.

    `when_omitted`: the template that a definition gets at publication in place of an arg that it leaves out.
    """

    type: Literal["string", "integer", "number", "boolean", "object", "array", "any"] = "string"
    required: bool = False
    default: JSON = None
    when_omitted: str = ""
    description: str = ""
    enum: tuple[str, ...] = ()
    pattern: str = ""
    minimum: float | None = None
    maximum: float | None = None
    max_length: int | None = None


class SecretField(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One secret of a connection."""

    description: str = ""
    required: bool = True


class Auth(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How the secret goes along: `bearer`, `basic` (setting `username`), or a `header` of that name."""

    type: Literal["bearer", "basic", "header", "none"] = "none"
    secret: str = ""
    header: str = ""


class Request(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One HTTP request. Texts hold references such as `{args.email}`; `name` is where later requests find its body."""

    path: str
    method: Literal["GET", "POST", "PUT", "PATCH", "DELETE"] = "GET"
    name: str = "response"
    query: dict[str, JSON] = {}
    headers: dict[str, JSON] = {}
    json: JSON = None
    form: dict[str, JSON] = {}


class Pagination(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How a list goes on. Paths are dots into the body.

    `cursor`: the body's `cursor` goes into `parameter`. `last_id`: the last item's id does, while `more` is true.
    `link`: the `next` URL of the Link header is called.
    """

    style: Literal["cursor", "last_id", "link"]
    items: str = ""
    cursor: str = ""
    parameter: str = ""
    more: str = ""


class Operation(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One action. `requests` are sent in order; `output` is a template over their bodies, else the last body."""

    requests: tuple[Request, ...]
    description: str = ""
    args: dict[str, Field] = {}
    output: JSON = None
    pagination: Pagination | None = None
    timeout_ms: int = 30_000


class Errors(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where an answer says what went wrong. `failed`: a path that is false in a failure's body, whatever the status.

    `retryable` are the system's own codes after which another try makes sense although the status does not say so;
    `final` are those after which it does not although the status does.
    """

    code: str = ""
    message: str = ""
    failed: str = ""
    retryable: tuple[str, ...] = ()
    final: tuple[str, ...] = ()


class Connector(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One system. A connection of type `connector` may override `base_url` with a setting of that name."""

    connector: str
    base_url: str = ""
    title: str = ""
    settings: dict[str, Field] = {}
    secrets: dict[str, SecretField] = {}
    auth: Auth = Auth()
    headers: dict[str, str] = {}
    errors: Errors = Errors()
    test: Request | None = None
    operations: dict[str, Operation] = {}


BASE_URL_SETTING: Final = Field(description="Where the API is, when it is not at its usual place.", max_length=2_000)

REQUIRED_BASE_URL: Final = Field(description="Where the API is.", required=True, max_length=2_000)


def read_connector(path: Path) -> Connector:
    """The connector of a YAML file. Raises ActionLoadError naming the file and the place of the fault."""
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        raw: Any = yaml.load(path.read_text(encoding="utf-8"), Loader=loader)  # noqa: S506 (both loaders are safe ones)
        made = msgspec.convert(raw, Connector)
    except (OSError, UnicodeDecodeError, yaml.YAMLError, msgspec.ValidationError) as fault:
        raise ActionLoadError(f"the connector file {path} cannot be used: {fault}") from fault
    reason = _fault(made)
    if reason:
        raise ActionLoadError(f"the connector file {path} cannot be used: {reason}")
    return made


def _fault(made: Connector) -> str:
    if _NAME.fullmatch(made.connector) is None:
        return f"{made.connector!r} is no connector name; use a to z, 0 to 9 and _"
    if made.auth.type != "none" and made.auth.secret not in made.secrets:
        return f"auth.secret is {made.auth.secret!r}, which is not among its secrets"
    if made.auth.type == "header" and not made.auth.header:
        return "auth of type header names no header"
    for name, operation in made.operations.items():
        if _OPERATION.fullmatch(name) is None:
            return f"{name!r} is no operation name; use a to z, 0 to 9 and _, in parts joined by dots"
        if not operation.requests:
            return f"the operation {name!r} has no request"
        if operation.pagination is not None and len(operation.requests) != 1:
            return f"the operation {name!r} is a list, so it has exactly one request"
    return ""
