"""What AWS refuses, as errors of an attempt: `<Service>.<its own code>`, and whether trying again makes sense."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from ductor.actions.errors import ActionError
from ductor.model.errors import clip
from ductor.model.json import JSON

NAMES: Final = {
    "lambda": "Lambda",
    "sqs": "SQS",
    "sns": "SNS",
    "events": "EventBridge",
    "s3": "S3",
    "dynamodb": "DynamoDB",
    "sesv2": "SES",
    "stepfunctions": "StepFunctions",
    "sts": "STS",
}
"""How error codes name the services, by the vendor's names of them."""

MAX_MESSAGE: Final = 2_000

_TRY_AGAIN: Final = frozenset(
    {
        "ExecutionLimitExceeded",
        "InternalError",
        "InternalFailure",
        "InternalServerError",
        "KMSThrottlingException",
        "LimitExceededException",
        "OverLimit",
        "PriorRequestNotComplete",
        "ProvisionedThroughputExceeded",
        "ProvisionedThroughputExceededException",
        "RequestLimitExceeded",
        "RequestThrottled",
        "RequestTimeout",
        "ResourceConflictException",
        "ServiceUnavailable",
        "SlowDown",
        "ThrottledException",
        "Throttling",
        "ThrottlingError",
        "ThrottlingException",
        "TooManyRequestsException",
        "TransactionConflict",
        "TransactionConflictException",
        "TransactionInProgressException",
    }
)
_DENIED: Final = frozenset(
    {"AccessDenied", "AccessDeniedException", "AuthorizationError", "AuthorizationErrorException", "NotAuthorized"}
)
_CREDENTIALS: Final = (
    "no AWS credentials are known here; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE, "
    "or run where a role is given"
)


def not_configured(message: str) -> ActionError:
    """Credentials, region or permission to use AWS at all are missing."""
    return ActionError("AWS_NOT_CONFIGURED", message, retryable=False)


def service_error(
    service: str, code: str, message: str, *, retryable: bool = False, details: Mapping[str, JSON] | None = None
) -> ActionError:
    """A refusal in the words of a service: `DynamoDB.ConditionalCheckFailedException`."""
    name = NAMES.get(service, service)
    return ActionError(f"{name}.{code}", clip(message, MAX_MESSAGE), retryable, {"service": name, **(details or {})})


def too_large(what: str, size: int, limit: int) -> ActionError:
    """More than the service takes; found out before it is asked."""
    message = f"{what} has {size} bytes; at most {limit} are allowed. Put it into S3 and pass a reference"
    return ActionError("PAYLOAD_TOO_LARGE", message, retryable=False, details={"bytes": size, "limit": limit})


@contextmanager
def translated(service: str, operation: str) -> Iterator[None]:
    """Raises ActionError for whatever the vendor's library raises.

    Retryable: throttling, 5xx, timeouts, and networks that are away. A call without an answer may have had its effect.
    """
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        yield
    except (BotoCoreError, ClientError, ValueError) as fault:
        raise _told(service, operation, fault) from None


def _told(service: str, operation: str, fault: Exception) -> ActionError:
    from botocore.exceptions import ClientError, HTTPClientError, IncompleteReadError
    from botocore.exceptions import ConnectionError as NotConnectedError

    name = NAMES.get(service, service)
    if isinstance(fault, ClientError):
        return _answered(service, fault)
    if isinstance(fault, (HTTPClientError, NotConnectedError, IncompleteReadError)):
        late = "Timeout" in type(fault).__name__
        message = f"{name} {'did not answer in time' if late else 'cannot be reached'}: {_short(fault)}"
        details: dict[str, JSON] = {"service": name, "operation": operation}
        return ActionError("AWS_TIMEOUT" if late else "AWS_UNREACHABLE", message, retryable=True, details=details)
    return _unasked(name, operation, fault)


def _unasked(name: str, operation: str, fault: Exception) -> ActionError:
    """The library did not even ask: something is not configured, or the parameters cannot be meant."""
    from botocore.exceptions import (
        CredentialRetrievalError,
        NoCredentialsError,
        NoRegionError,
        ParamValidationError,
        PartialCredentialsError,
        ProfileNotFound,
    )

    if isinstance(fault, NoRegionError):
        return not_configured(f"no AWS region is known for {name}; set AWS_REGION, or the arg region")
    if isinstance(fault, (NoCredentialsError, PartialCredentialsError)):
        return not_configured(_CREDENTIALS)
    if isinstance(fault, (CredentialRetrievalError, ProfileNotFound)):
        return not_configured(f"the AWS credentials cannot be used: {_short(fault)}")
    if isinstance(fault, ParamValidationError):
        details: dict[str, JSON] = {"service": name, "operation": operation}
        return ActionError(f"{name}.ParamValidationError", _short(fault), retryable=False, details=details)
    return not_configured(f"{name} cannot be called: {type(fault).__name__}: {_short(fault)}")


def _answered(service: str, fault: Any) -> ActionError:
    told, meta = fault.response.get("Error", {}), fault.response.get("ResponseMetadata", {})
    own, status = str(told.get("Code") or "Unknown"), int(meta.get("HTTPStatusCode") or 0)
    code = own.rsplit(".", 1)[-1].rsplit("#", 1)[-1]
    if fault.operation_name == "AssumeRole":
        service = "sts"
    name = NAMES.get(service, service)
    hint = "; allow it in a policy of the identity that workflows call AWS with" if code in _DENIED else ""
    message = f"{name} answered {code} to {fault.operation_name}: {told.get('Message') or 'no reason given'}{hint}"
    details: dict[str, JSON] = {"operation": fault.operation_name, "code": own, "status": status}
    if meta.get("RequestId"):
        details["request_id"] = str(meta["RequestId"])
    retryable = code in _TRY_AGAIN or status == 429 or status >= 500
    return service_error(service, code, message, retryable=retryable, details=details)


def _short(fault: BaseException) -> str:
    return clip(str(fault), MAX_MESSAGE)
