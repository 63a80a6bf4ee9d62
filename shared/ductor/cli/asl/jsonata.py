"""Simple JSONata as CEL: paths, variables, literals, comparisons and arithmetic. Anything else is not carried over."""

from __future__ import annotations

import json
import re
from typing import Any, Final

from ductor.cli.asl.values import Data, NotCarriedError, context, parse_path, plain, select, template, variable

_WRAPPED: Final = re.compile(r"\{%(.*)%\}", re.DOTALL)
_TOKEN: Final = re.compile(
    r"""\s*(?:
    (?P<path>\$[A-Za-z_]\w*(?:\.[A-Za-z_]\w*|\[\d+\])*)
    |(?P<text>"[^"\\]*"|'[^'\\]*')
    |(?P<number>\d+(?:\.\d+)?)
    |(?P<word>and|or|true|false|null)\b
    |(?P<operator>!=|<=|>=|=|<|>|\+|-|\*|/|&|\(|\)|\?|:)
    )""",
    re.VERBOSE | re.ASCII,
)
_SPELLED: Final = {"and": "&&", "or": "||", "=": "==", "&": "+"}


def is_expression(value: Any) -> bool:
    """Whether a value is one `{% … %}`."""
    return isinstance(value, str) and _WRAPPED.fullmatch(value.strip()) is not None


def expression(text: str, data: Data, result: str | None = None) -> str:
    """CEL for `{% … %}` or its inside; `result` is what `$states.result` stands for. Raises NotCarriedError."""
    match = _WRAPPED.fullmatch(text.strip())
    source = (match[1] if match else text).strip()
    parts: list[str] = []
    position = 0
    while position < len(source):
        token = _TOKEN.match(source, position)
        if token is None or (source[token.end() :].lstrip().startswith("(") and token["path"]):
            raise NotCarriedError(f"JSONata {source[position:].strip()[:40]!r} has no simple counterpart")
        parts.append(_cel(token, data, result))
        position = token.end()
    if not parts:
        raise NotCarriedError("an empty expression")
    return " ".join(parts)


def payload(value: Any, data: Data, result: str | None = None) -> Any:
    """A JSON value with its expressions as our templates."""
    if isinstance(value, dict):
        return {key: payload(item, data, result) for key, item in value.items()}
    if isinstance(value, list):
        return [payload(item, data, result) for item in value]
    return template(expression(value, data, result)) if is_expression(value) else plain(value)


def _cel(token: re.Match[str], data: Data, result: str | None) -> str:
    if token["path"]:
        return _path(token["path"], data, result)
    if token["text"]:
        return json.dumps(token["text"][1:-1])
    found = token[0].strip()
    return _SPELLED.get(found, found)


def _path(text: str, data: Data, result: str | None) -> str:
    name = re.match(r"\$(\w+)", text)
    if name is None or name[1] != "states":
        return variable(text[1:], data)
    keys = parse_path(text[name.end() :])
    if keys[:1] == ("input",):
        return data.at(keys[1:])
    if keys[:1] == ("result",) and result is not None:
        return select(result, keys[1:])
    if keys[:1] == ("context",):
        return context(keys[1:])
    raise NotCarriedError(f"{text[:40]} has no counterpart here")
