"""Reads what people write on the command line into request values. Refuses with the form that is expected."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ductor.cli.failure import Exit, Failure


def json_value(text: str, option: str) -> Any:
    """The JSON of `text`; `@file` reads a file, `@-` standard input. Raises Failure with line and column."""
    source, name = _source(text, option)
    try:
        return json.loads(source, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise Failure(f"{option}: {name} is not JSON: {error}", code=Exit.USAGE) from error


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


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a JSON number")
