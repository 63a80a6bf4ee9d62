"""Bytes and ids in the characters that SQS takes. Changes nothing that SQS would take as it is."""

from __future__ import annotations

import base64
import hashlib
import re
from typing import Final

_MARK: Final = "base64:"
"""Begins a body that is not plain text. Ours are JSON, which never begins so."""

# Everything but these is refused with InvalidMessageContents.
_REFUSED: Final = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_ID: Final = re.compile(r"[\x21-\x7e]{1,128}")


def body_text(body: bytes) -> str:
    """A message body for some bytes: they themselves when they are text that SQS takes, else base64 behind a mark."""
    try:
        text = body.decode()
    except UnicodeDecodeError:
        return _marked(body)
    return _marked(body) if not text or text.startswith(_MARK) or _REFUSED.search(text) else text


def body_bytes(text: str) -> bytes:
    """The bytes in a body made by `body_text`; any other text as it is."""
    if text.startswith(_MARK):
        try:
            return base64.b64decode(text[len(_MARK) :], validate=True)
        except ValueError:
            pass
    return text.encode("utf-8", "replace")


def dedup_text(dedup_id: str) -> str:
    """A de-duplication id of characters that SQS takes, the same for the same id."""
    return (
        dedup_id if _ID.fullmatch(dedup_id) else hashlib.sha256(dedup_id.encode("utf-8", "surrogatepass")).hexdigest()
    )


def is_group(group: str) -> bool:
    """Whether SQS takes it as a message group."""
    return _ID.fullmatch(group) is not None


def _marked(body: bytes) -> str:
    return _MARK + base64.b64encode(body).decode()
