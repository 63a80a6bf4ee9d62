"""Secrets as SecureString parameters of Systems Manager, which encrypts them with KMS. Free in the standard tier.

A name is written once and never changed, so what was read once stays true: each process asks for it once.
"""

from __future__ import annotations

from typing import Final

from botocore.exceptions import ClientError

from ductor.adapters.aws.clients import Clients
from ductor.adapters.aws.faults import code_of, translated

_MISSING: Final = "ParameterNotFound"
_MAX_CACHED: Final = 256


class SsmSecrets:
    """`ports.Secrets` under a prefix such as `/ductor/prod`. A standard parameter holds 4 KB."""

    def __init__(self, prefix: str, clients: Clients) -> None:
        self._prefix = prefix.rstrip("/")
        self._clients = clients
        self._known: dict[str, str] = {}

    def put(self, name: str, text: str) -> None:
        with translated():
            self._clients("ssm").put_parameter(
                Name=self._full(name), Value=text, Type="SecureString", Tier="Standard", Overwrite=True
            )

    def get(self, name: str) -> str | None:
        known = self._known.get(name)
        if known is not None:
            return known
        with translated():
            text = self._read(name)
        if text is not None:
            if len(self._known) >= _MAX_CACHED:
                self._known.clear()
            self._known[name] = text
        return text

    def delete(self, name: str) -> None:
        self._known.pop(name, None)
        with translated():
            try:
                self._clients("ssm").delete_parameter(Name=self._full(name))
            except ClientError as error:
                if code_of(error) != _MISSING:
                    raise

    def _read(self, name: str) -> str | None:
        try:
            answer = self._clients("ssm").get_parameter(Name=self._full(name), WithDecryption=True)
        except ClientError as error:
            if code_of(error) == _MISSING:
                return None
            raise
        return str(answer["Parameter"]["Value"])

    def _full(self, name: str) -> str:
        return f"{self._prefix}/{name}"
