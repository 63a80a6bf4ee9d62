"""Where the server is and which key opens it: the environment, else the file that the server wrote. Sends nothing."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from ductor.cli.failure import Exit, Failure

DEFAULT_URL: Final = "http://localhost:8080"
ENV_FILE: Final = "env"
KEY: Final = "DUCTOR_API_KEY"
TENANT: Final = "DUCTOR_TENANT_ID"
URL: Final = "DUCTOR_API_URL"


@dataclass(frozen=True)
class Access:
    """An address without a trailing slash, and the caller's key and tenant."""

    url: str
    key: str
    tenant: str

    @property
    def loopback(self) -> bool:
        """Whether the server is this machine; then no proxy may stand between."""
        return urlsplit(self.url).hostname in ("localhost", "127.0.0.1", "::1")


def find(data: Path, environment: Mapping[str, str] | None = None, *, file: str = ENV_FILE) -> Access:
    """The access from DUCTOR_API_KEY, DUCTOR_TENANT_ID and DUCTOR_API_URL, each missing one from `<data>/<file>`.

    A key from the environment is never sent with the file's tenant or address: they belong together. Raises Failure
    when no key is found or the address is not http(s).
    """
    given = os.environ if environment is None else environment
    stored = {} if given.get(KEY) else read_env(data / file)
    values = {name: given.get(name) or stored.get(name, "") for name in (KEY, TENANT, URL)}
    tenant = values[TENANT] or given.get("DUCTOR_TENANT", "")
    missing = [name for name, value in ((KEY, values[KEY]), (TENANT, tenant)) if not value]
    if missing:
        raise Failure(
            f"{' and '.join(missing)} not set, and {data / file} does not hold it",
            code=Exit.USAGE,
            hint=f"start a server with `ductor serve`, then: source {data / file} (or name its folder with --data)",
        )
    url = (values[URL] or DEFAULT_URL).rstrip("/")
    if urlsplit(url).scheme not in ("http", "https") or not urlsplit(url).hostname:
        raise Failure(f"{URL} is not an address: {url}", code=Exit.USAGE, hint=f"write it like {DEFAULT_URL}")
    return Access(url, values[KEY], tenant)


def read_env(path: Path) -> dict[str, str]:
    """The `export NAME=value` lines of a file; empty when there is none. Raises Failure when it cannot be read."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError) as error:
        raise Failure(f"cannot read {path}: {getattr(error, 'strerror', None) or 'it is not text'}") from error
    return dict(_assignments(text, path))


def _assignments(text: str, path: Path) -> list[tuple[str, str]]:
    try:
        words = shlex.split(text, comments=True)
    except ValueError as error:
        raise Failure(f"{path} is not a file of export lines: {error}") from error
    pairs = (word.split("=", 1) for word in words if "=" in word)
    return [(name, value) for name, value in pairs]
