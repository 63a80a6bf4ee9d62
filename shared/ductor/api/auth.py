"""Who is calling: from the key itself where the request comes in directly, from the authorizer's word behind a gateway.

Only `GatewayIdentity` trusts what stands in the event, so it must never serve events that a client can shape.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Protocol

import msgspec

from ductor.app.access import Caller
from ductor.app.keys import Keys
from ductor.model.errors import ErrorCode, RefusedError, Violation, refuse

_CALLER: Final = "caller"
_REFUSAL: Final = "refusal"


class Identity(Protocol):
    """Finds the caller of an API Gateway event. Raises RefusedError (UNAUTHENTICATED) when there is none."""

    def __call__(self, event: Mapping[str, Any]) -> Caller: ...


class KeyIdentity:
    """Checks the Authorization header in this process."""

    def __init__(self, keys: Keys) -> None:
        self._keys = keys

    def __call__(self, event: Mapping[str, Any]) -> Caller:
        headers = event.get("headers") or {}
        return self._keys.authenticate(headers.get("authorization"))


class _Refusal(msgspec.Struct, frozen=True):
    error_code: ErrorCode
    message: str
    violations: tuple[Violation, ...]


class GatewayIdentity:
    """Takes the answer of the Lambda authorizer in front (`authorizer_context`) out of the event's request context."""

    def __call__(self, event: Mapping[str, Any]) -> Caller:
        context = ((event.get("requestContext") or {}).get("authorizer") or {}).get("lambda") or {}
        if caller := context.get(_CALLER):
            return msgspec.json.decode(caller, type=Caller)
        if text := context.get(_REFUSAL):
            refusal = msgspec.json.decode(text, type=_Refusal)
            raise RefusedError(refusal.error_code, refusal.message, refusal.violations)
        raise refuse(
            ErrorCode.UNAUTHENTICATED, "KEY_MISSING", "send an API key: Authorization: Bearer dk_…", "Authorization"
        )


def authorizer_context(keys: Keys, event: Mapping[str, Any]) -> dict[str, str]:
    """What the authorizer passes on for `event`: the caller or the refusal, each as text.

    It always lets the request through, because a refusal by the gateway itself would not have our error shape.
    """
    try:
        return {_CALLER: msgspec.json.encode(KeyIdentity(keys)(event)).decode()}
    except RefusedError as refused:
        refusal = _Refusal(refused.error_code, refused.message, refused.violations)
        return {_REFUSAL: msgspec.json.encode(refusal).decode()}
