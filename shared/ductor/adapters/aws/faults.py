"""What AWS answers when something goes wrong, told once in the words of the ports. Retries nothing by itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from botocore.exceptions import BotoCoreError, ClientError, HTTPClientError, IncompleteReadError
from botocore.exceptions import ConnectionError as NotConnectedError
from pynamodb.exceptions import PynamoDBException

from ductor.ports import ItemTooLargeError, UnavailableError

CONDITION_LOST: Final = "ConditionalCheckFailedException"
TRANSACTION_CANCELED: Final = "TransactionCanceledException"

IN_THE_WAY: Final = frozenset({"TransactionConflictException", "TransactionInProgressException"})
"""Another transaction holds the row at this moment: the same write may succeed at once afterwards."""

_BUSY: Final = frozenset(
    {
        "InternalServerError",
        "InternalServerErrorException",
        "InternalFailure",
        "InternalError",
        "LimitExceededException",
        "OverLimit",
        "PriorRequestNotComplete",
        "ProvisionedThroughputExceededException",
        "RequestLimitExceeded",
        "RequestThrottled",
        "RequestThrottledException",
        "RequestTimeout",
        "ServiceQuotaExceededException",
        "ServiceUnavailable",
        "SlowDown",
        "ThrottledException",
        "Throttling",
        "ThrottlingException",
        "TooManyRequestsException",
        *IN_THE_WAY,
    }
)
_TOO_LARGE: Final = "Item size"
"""DynamoDB has no code for it: "Item size has exceeded the maximum allowed size" and "Item size to update has …"."""


class AwsRefusedError(RuntimeError):
    """AWS refuses for good: a missing permission or resource, or a malformed request. Repeating it would not help."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code


@contextmanager
def translated() -> Iterator[None]:
    """Raises UnavailableError, ItemTooLargeError or AwsRefusedError for whatever the vendor's libraries raise."""
    try:
        yield
    except PynamoDBException as error:
        raise told(error.cause or error) from error
    except (ClientError, BotoCoreError) as error:
        raise told(error) from error


def told(error: BaseException) -> Exception:
    """The exception of ours that says the same."""
    if not isinstance(error, ClientError):
        # No answer at all. Whatever the request asked for may have happened.
        return UnavailableError(f"{type(error).__name__}: {error}") if _is_network(error) else _refused(error)
    code, message = code_of(error), str(response_of(error).get("Error", {}).get("Message", ""))
    if code == "ValidationException" and _TOO_LARGE in message:
        return ItemTooLargeError(message)
    if code in _BUSY or status_of(error) >= 500:
        return UnavailableError(f"{code}: {message}")
    return AwsRefusedError(code, message)


def _refused(error: BaseException) -> AwsRefusedError:
    return AwsRefusedError(type(error).__name__, str(error))


def _is_network(error: BaseException) -> bool:
    return isinstance(error, (HTTPClientError, NotConnectedError, IncompleteReadError))


def response_of(error: ClientError) -> Mapping[str, Any]:
    """The whole answer: pynamodb's exception keeps only a part of it, the one that it was made from has the rest."""
    origin = error.__cause__ if isinstance(error.__cause__, ClientError) else error
    response: Mapping[str, Any] = origin.response
    return response


def code_of(error: ClientError) -> str:
    return str(response_of(error).get("Error", {}).get("Code", ""))


def status_of(error: ClientError) -> int:
    return int(response_of(error).get("ResponseMetadata", {}).get("HTTPStatusCode", 0))


def was_repeated(error: ClientError) -> bool:
    """Whether the library had sent the request before: an earlier copy may have succeeded without our knowing."""
    return int(response_of(error).get("ResponseMetadata", {}).get("RetryAttempts", 0)) > 0
