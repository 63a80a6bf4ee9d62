"""The tools of an agent: actions of this installation, offered to a model and run with a key of their own per call."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

import msgspec

from ductor.actions.ai.model import ToolCall, ToolResult, ToolSpec
from ductor.actions.connection import Connection
from ductor.actions.context import ActionContext
from ductor.actions.errors import ActionError, AttemptCancelledError
from ductor.actions.execute import failure
from ductor.actions.registry import Action, ActionRegistry
from ductor.app.connected_run import Resolver, execute_connected
from ductor.model.attempt import AttemptTask
from ductor.model.errors import clip
from ductor.model.json import JSON, encode
from ductor.model.payload import NULL
from ductor.ports import UnavailableError
from ductor.steps.ai_agent import Tool

MAX_RESULT_BYTES: Final = 32_768
"""Longest result that a model reads; more is cut, and the model is told."""

MAX_NAME: Final = 64
_CUT: Final = "\n[cut: the result has {} bytes]"
_OTHER: Final = re.compile(r"[^A-Za-z0-9_-]")
_ANYTHING: Final[dict[str, JSON]] = {"type": "object"}


class Outcome(msgspec.Struct, frozen=True):
    """How a call ended. `tool` is the action's name, or what the model called it."""

    tool: str
    result: ToolResult
    code: str = ""


class Toolbox:
    """The tools of one step. Raises ActionError `ACTION_UNKNOWN` for one that this worker does not have."""

    def __init__(self, tools: Sequence[Tool], registry: ActionRegistry, connections: Resolver) -> None:
        self._connections = connections
        self._by_name: dict[str, tuple[Tool, Action]] = {}
        for tool in tools:
            action = registry.get(tool.action)
            if action is None:
                raise ActionError("ACTION_UNKNOWN", f"no action {tool.action!r} is registered here", retryable=False)
            self._by_name[self._free_name(tool.action)] = (tool, action)
        self.specs = tuple(_spec(name, tool, action) for name, (tool, action) in self._by_name.items())

    def __len__(self) -> int:
        return len(self._by_name)

    def _free_name(self, action: str) -> str:
        """Models know neither dots nor long names; the same tools always get the same names."""
        name = _OTHER.sub("_", action)[:MAX_NAME]
        number = 2
        while name in self._by_name:
            mark = f"_{number}"
            name = f"{_OTHER.sub('_', action)[: MAX_NAME - len(mark)]}{mark}"
            number += 1
        return name

    def run(self, call: ToolCall, ctx: ActionContext, key: str) -> Outcome:
        """Run a call with the idempotency key `key`. What goes wrong with the tool is told to the model.

        Raises AttemptCancelledError and UnavailableError: then the call has not ended.
        """
        known = self._by_name.get(call.name)
        if known is None:
            names = ", ".join(self._by_name)
            return _failed(call, call.name[:MAX_NAME], "TOOL_UNKNOWN", f"there is no such tool; the tools are {names}")
        tool, action = known
        if call.fault:
            return _failed(call, tool.action, "ACTION_ARGS_INVALID", call.fault)
        try:
            _, data = execute_connected(action, call.input, self._context(tool, action, ctx, key))
        except (AttemptCancelledError, UnavailableError):
            raise
        except Exception as fault:  # noqa: BLE001 - an action may raise anything; the model is told
            error = failure(fault)
            return _failed(call, tool.action, error.code, error.message)
        return Outcome(tool.action, ToolResult(call.id, _cut(data)))

    def _context(self, tool: Tool, action: Action, ctx: ActionContext, key: str) -> ActionContext:
        return msgspec.structs.replace(
            ctx,
            idempotency_key=f"{key}/{ctx.attempt}" if action.per_attempt_key else key,
            connection=self._connection(tool, action, ctx),
            last_heartbeat=None,
            # Of a tool only the sign of life counts: the details are the agent's.
            on_heartbeat=lambda _: ctx.on_heartbeat(None),
        )

    def _connection(self, tool: Tool, action: Action, ctx: ActionContext) -> Connection | None:
        """The tool's own; without one the connection whose slug is the type that the action needs."""
        ref = tool.connection_ref or action.connection_type
        task = AttemptTask(
            run_id=ctx.run_id,
            tenant=ctx.tenant,
            node=ctx.node,
            attempt=ctx.attempt,
            generation=0,
            action=tool.action,
            input=NULL,
            connection_ref=ref,
            connection_ref_mode=tool.connection_ref_mode,
            environment=ctx.environment,
        )
        return self._connections.resolve(task)


def _spec(name: str, tool: Tool, action: Action) -> ToolSpec:
    schema = _ANYTHING if action.args_model is None else action.args_model.model_json_schema()
    return ToolSpec(name, tool.description or action.description or tool.action, schema)


def _failed(call: ToolCall, tool: str, code: str, message: str) -> Outcome:
    text = encode({"error": {"code": code, "message": clip(message, MAX_RESULT_BYTES // 2)}}).decode()
    return Outcome(tool, ToolResult(call.id, text, failed=True), code)


def _cut(data: bytes) -> str:
    text = data.decode("utf-8", "replace")
    return text if len(data) <= MAX_RESULT_BYTES else clip(text, MAX_RESULT_BYTES) + _CUT.format(len(data))
