"""What the vendor's library raises, in the words of the ports: an outage is no refusal."""

from __future__ import annotations

import pytest
from botocore.exceptions import (
    ConnectionClosedError,
    ConnectTimeoutError,
    EndpointConnectionError,
    NoRegionError,
    ReadTimeoutError,
    SSLError,
)

from ductor.adapters.aws.faults import AwsRefusedError, told
from ductor.ports import UnavailableError

URL = "https://sqs.test"


@pytest.mark.parametrize(
    "error",
    [
        EndpointConnectionError(endpoint_url=URL),
        ConnectTimeoutError(endpoint_url=URL),
        ReadTimeoutError(endpoint_url=URL),
        ConnectionClosedError(endpoint_url=URL),
        SSLError(endpoint_url=URL, error="reset"),
    ],
)
def test_a_network_that_fails_is_unavailable(error: Exception) -> None:
    assert isinstance(told(error), UnavailableError)


def test_what_is_configured_wrongly_is_refused() -> None:
    assert isinstance(told(NoRegionError()), AwsRefusedError)
