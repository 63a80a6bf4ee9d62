"""References such as `{args.email}` in a connector's requests, and paths into answers. Look-ups, no expressions."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote

from ductor.actions.errors import ActionError
from ductor.model.json import JSON

_REFERENCE: Final = re.compile(r"\{([a-z]+(?:\.[A-Za-z0-9_-]+)+)\}")

Values = Mapping[str, JSON]
"""What references read: `args`, `settings`, and `results` by the name of the request."""


def filled(template: JSON, values: Values) -> Any:
    """The template with every reference replaced.

    A text that is one reference keeps the value's type. A field whose only reference has no value is left out, and so
    is an object of nothing but such fields.
    """
    if isinstance(template, str):
        whole = _REFERENCE.fullmatch(template)
        return _looked_up(whole[1], values) if whole else _REFERENCE.sub(lambda at: _text(at[1], values), template)
    if isinstance(template, list):
        return [item for item in (filled(one, values) for one in template) if item is not None]
    if isinstance(template, dict):
        found = {name: filled(one, values) for name, one in template.items()}
        kept = {name: value for name, value in found.items() if value is not None}
        return kept if kept or not template else None
    return template


def filled_path(template: str, values: Values) -> str:
    """A URL path; what is put in is quoted, so that it can only ever be one segment. Raises ActionError when empty."""

    def segment(at: re.Match[str]) -> str:
        text = _text(at[1], values)
        if text in ("", ".", ".."):
            raise ActionError("ACTION_ARGS_INVALID", f"{at[1]} cannot be {text!r} here", retryable=False)
        return quote(text, safe="")

    return _REFERENCE.sub(segment, template)


def at_path(value: JSON, path: str) -> Any:
    """What stands at `a.b.0.c` in a JSON value; None when nothing does. An empty path is the value itself."""
    for part in path.split(".") if path else ():
        if isinstance(value, dict):
            value = value.get(part)
        elif isinstance(value, list) and part.isdecimal() and int(part) < len(value):
            value = value[int(part)]
        else:
            return None
    return value


def _looked_up(path: str, values: Values) -> Any:
    root, _, rest = path.partition(".")
    return at_path(values.get(root), rest)


def _text(path: str, values: Values) -> str:
    value = _looked_up(path, values)
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str | int | float):
        return str(value)
    raise ActionError("ACTION_ARGS_INVALID", f"{path} must be a text or a number", retryable=False)
