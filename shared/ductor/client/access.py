"""Where the server is and which key opens it, from arguments or the environment. Sends nothing."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urlsplit

URL: Final = "DUCTOR_API_URL"
KEY: Final = "DUCTOR_API_KEY"
TENANT: Final = "DUCTOR_TENANT_ID"


class AccessError(ValueError):
    """No key, no tenant, or an address that is none; the message says which to set."""


@dataclass(frozen=True)
class Access:
    """An address without a trailing slash, the key and its tenant."""

    url: str
    key: str = field(repr=False)
    tenant: str

    @classmethod
    def of_environment(cls, environment: Mapping[str, str] | None = None) -> Access:
        """DUCTOR_API_URL, DUCTOR_API_KEY and DUCTOR_TENANT_ID, as a server's `env` file sets them. Raises AccessError.

        Without an address: http://localhost:8080.
        """
        given = os.environ if environment is None else environment
        missing = [name for name in (KEY, TENANT) if not given.get(name)]
        if missing:
            raise AccessError(f"{' and '.join(missing)} not set; source the env file of a server's data folder")
        return cls(given.get(URL) or "http://localhost:8080", given[KEY], given[TENANT])

    def __post_init__(self) -> None:
        parts = urlsplit(self.url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise AccessError(f"{self.url!r} is no address; write it like http://localhost:8080")
        object.__setattr__(self, "url", self.url.rstrip("/"))

    @property
    def loopback(self) -> bool:
        """Whether the server is this machine; then no proxy may stand between."""
        return urlsplit(self.url).hostname in ("localhost", "127.0.0.1", "::1")
