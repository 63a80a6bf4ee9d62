"""What an author may leave out because the called action says what it is then: its connection and some of its args.

Publication stores the completed document, so a run, a diff and a reader all see the same call. It never overrides.
"""

from __future__ import annotations

from typing import Final

from ductor.model.json import JSON
from ductor.validation.context import Context, Standing
from ductor.validation.view import Json, objects

_GROUPS: Final = ("on_failure", "on_cancel", "finally")
_DIRECT: Final = "direct"


def completed(document: Json, context: Context) -> Json:
    """The document with what its calls leave out: steps, compensation targets and hooks. Shares what did not change.

    A connection is filled in when one with the slug of its type exists, or when nobody knows whether it does.
    """
    made = dict(document)
    if isinstance(made.get("steps"), list):
        made["steps"] = [_step(step, context) if isinstance(step, dict) else step for step in _list(made["steps"])]
    if isinstance(hooks := made.get("hooks"), dict):
        made["hooks"] = {name: _call(hook, context) if isinstance(hook, dict) else hook for name, hook in hooks.items()}
    return made


def _step(step: Json, context: Context) -> Json:
    made = _call(step, context)
    compensation = made.get("compensation")
    if not isinstance(compensation, dict):
        return made
    groups = {
        name: [_call(target, context) for target in objects(compensation[name])]
        for name in _GROUPS
        if isinstance(compensation.get(name), list) and len(objects(compensation[name])) == len(compensation[name])
    }
    return {**made, "compensation": {**compensation, **groups}}


def _call(call: Json, context: Context) -> Json:
    name = call.get("action")
    if not isinstance(name, str) or name not in context.catalog:
        return call
    return _with_connection(_with_args(call, context.catalog.default_args(name)), name, context)


def _with_args(call: Json, defaults: dict[str, JSON]) -> Json:
    args = call.get("args", {})
    if not isinstance(args, dict) or defaults.keys() <= args.keys():
        return call
    return {**call, "args": {**defaults, **args}}


def _with_connection(call: Json, name: str, context: Context) -> Json:
    needed = context.catalog.connection_type(name)
    if not needed or call.get("connection_ref") or call.get("connection_ref_mode"):
        return call
    standing = context.connection(_DIRECT, needed)
    fits = standing is Standing.UNRESOLVED or (
        standing is Standing.KNOWN and context.connection_type(_DIRECT, needed) == needed
    )
    return {**call, "connection_ref": needed} if fits else call


def _list(value: JSON) -> list[JSON]:
    return value if isinstance(value, list) else []
