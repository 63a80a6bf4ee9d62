"""Reads what people write on the command line into request values. Refuses with the form that is expected."""

from __future__ import annotations

import codecs
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ductor.cli.failure import Exit, Failure
from ductor.model.json import JSON


def json_value(text: str, option: str) -> Any:
    """The JSON of `text`; `@file` reads a file, `@-` standard input. Raises Failure with the place and the code."""
    source, name = _source(text, option)
    try:
        return strict_json(source.encode("utf-8", "surrogatepass"), name)
    except Failure as failure:
        raise Failure(f"{option}: {failure.message}", code=Exit.USAGE) from None


def strict_json(data: bytes, name: str) -> JSON:
    """The JSON of a file or text, read as strictly as the server reads a body: repeated keys, NaN, depth.

    Raises Failure, which names the place and the code.
    """
    from ductor.api.json_reader import BODY, read_json
    from ductor.model.errors import RefusedError

    data = data.removeprefix(codecs.BOM_UTF8)
    if not data.strip():
        raise Failure(f"{name} is empty")
    try:
        return read_json(data, name)
    except RefusedError as refused:
        fault = refused.violations[0]
        place = "" if fault.message.startswith(name) else f"{name}: "
        inside = "" if fault.field == BODY else f"{fault.field[:200]}: "
        raise Failure(f"{place}{inside}{fault.message} [{fault.code}]") from None


def pair(text: str, separator: str, option: str, form: str) -> tuple[str, str]:
    """The two sides of the first `separator`, neither empty."""
    left, found, right = text.partition(separator)
    if not found or not left or not right:
        raise Failure(f"{option}: write it as {form}, not {text!r}", code=Exit.USAGE)
    return left, right


def labels(texts: Sequence[str]) -> list[tuple[str, str]]:
    """Key and id of each `key=id`."""
    return [pair(text, "=", "--label", "key=id") for text in texts]


def _source(text: str, option: str) -> tuple[str, str]:
    if not text.startswith("@"):
        return text, "the value"
    name = text[1:]
    if name == "-":
        return sys.stdin.read(), "standard input"
    try:
        return Path(name).read_text(encoding="utf-8"), name
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
        raise Failure(f"{option}: cannot read {name}: {reason}", code=Exit.USAGE) from error
