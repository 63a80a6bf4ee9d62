"""Clients of the AWS services: one of each per process, made when it is first needed. Reads no configuration itself.

Region, credentials and `AWS_ENDPOINT_URL` (for emulators) are found by the vendor's library in the usual places.
"""

from __future__ import annotations

import threading
from typing import Any, Final

# boto3's clients are botocore's. Making them without boto3 spares its import, which a cold start would pay for.
import botocore.session
from botocore.config import Config

CONNECT_SECONDS: Final = 2
READ_SECONDS: Final = 10
"""Longer than any answer takes; a queue is never polled for longer than half of it."""

TRIES: Final = 5
CONNECTIONS: Final = 16

RETRIES: Final = {"mode": "adaptive", "total_max_attempts": TRIES}
"""Backs off, and slows this process down while a service throttles it."""


_S3: Final[dict[str, Any]] = {"signature_version": "s3v4", "s3": {"addressing_style": "virtual"}}
"""For links: else botocore signs the name that buckets have in all regions, which leads to a new bucket only in one."""


_OWN: Final[dict[str, dict[str, Any]]] = {
    "s3": _S3,
    "cloudwatch": {"connect_timeout": 1, "read_timeout": 2, "retries": {"total_max_attempts": 1}},
}
"""What the clients of single services have otherwise. A figure from CloudWatch is not worth waiting for: runs wait."""


class Clients:
    """The clients of one process. Safe to use from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._session: Any = None
        self._made: dict[str, Any] = {}

    def __call__(self, service: str) -> Any:
        """The client of a service, by the vendor's name of it (`sqs`, `s3`, `scheduler`)."""
        client = self._made.get(service)
        if client is None:
            with self._lock:  # making clients is not thread-safe
                client = self._made.get(service) or self._make(service)
                self._made[service] = client
        return client

    def _make(self, service: str) -> Any:
        if self._session is None:
            self._session = botocore.session.get_session()
        config = Config(
            connect_timeout=CONNECT_SECONDS,
            read_timeout=READ_SECONDS,
            retries=RETRIES,
            max_pool_connections=CONNECTIONS,
        )
        own = Config(**_OWN.get(service, {}))
        return self._session.create_client(service, config=config.merge(own))
