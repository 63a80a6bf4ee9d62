"""Operators' controls of one node of a run: pause, resume, reset, and other retries or another timeout from here on."""

from __future__ import annotations

from typing import Final

import msgspec

from ductor.app.access import Caller, Scope, require
from ductor.app.control import Accepted, check_state, check_texts, look_up, operation_hash
from ductor.app.dispatch import intent_message, send_all
from ductor.app.headers import is_stalled, read_what_is_readable
from ductor.app.library import Library
from ductor.app.places import Places
from ductor.app.refusals import invalid, node_not_found, precondition
from ductor.app.requests import OperatorRequest
from ductor.model.definition import Retry, Step
from ductor.model.enums import StepType
from ductor.model.intent import IntentKind
from ductor.model.json import JSON
from ductor.model.run import RunState
from ductor.ports import Clock, Ids, Item, Queue, Table

NODE_OPERATIONS: Final = {
    "pause": IntentKind.NODE_PAUSE,
    "resume": IntentKind.NODE_RESUME,
    "reset": IntentKind.NODE_RESET,
    "updateRetryPolicy": IntentKind.NODE_RETRY_POLICY,
    "updateTimeout": IntentKind.NODE_TIMEOUT,
}

RETRIED: Final = frozenset({StepType.ACTION, StepType.SUBWORKFLOW, StepType.AI_ACTION, StepType.AI_AGENT})
"""Types of which a failed attempt is tried again."""

MAX_NODE_ID: Final = 256


class NodeRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One control. `retry` are the changed fields of a retry policy, `timeout_ms` is the new timeout (0 = none)."""

    request_id: str
    reason: str = ""
    retry: dict[str, JSON] | None = None
    timeout_ms: int | None = None


class NodeControls:
    """Sends intents about single nodes. Idempotent by `request_id` per run like all controls."""

    def __init__(self, *, table: Table, library: Library, intents: Queue, clock: Clock, ids: Ids) -> None:
        self._table = table
        self._library = library
        self._intents = intents
        self._clock = clock
        self._ids = ids
        self._places = Places(table, library)

    def send(self, caller: Caller, run_id: str, node: str, operation: str, request: NodeRequest) -> Accepted:
        """Enqueue a control of `node` (`charge`, or `charge@3` in a scatter).

        Refuses at once: NOT_FOUND for an unknown run or step, FAILED_PRECONDITION `RUN_TERMINAL`, `NODE_ENDED`,
        `STEP_TYPE_WRONG` (no retries to change), `REQUEST_ID_REUSED`. What only the next tick can know becomes a
        rejected audit entry.
        """
        require(caller, Scope.RUN_WRITE)
        kind = NODE_OPERATIONS[operation]
        check_texts(request.request_id, request.reason)
        said: JSON = {"retry": request.retry, "timeout_ms": request.timeout_ms}
        digest = operation_hash(f"node.{operation}", node, said)
        header, answered = look_up(self._table, caller, run_id, request.request_id, digest)
        if answered:
            return Accepted(run_id)
        check_state(kind, header)
        body = self._body(header, node, kind, request)
        asked = OperatorRequest(caller.key_id, run_id, kind, request.request_id, request.reason, digest)
        intent = asked.intent(self._ids, self._clock, node=node, body=body)
        send_all(self._intents, [intent_message(intent, self._ids)])
        return Accepted(run_id)

    def _body(self, header: Item, node: str, kind: IntentKind, request: NodeRequest) -> JSON:
        """What the coordinator is told; refuses what the definition and the state rule out."""
        state = read_what_is_readable(header)
        if state is None:
            raise precondition("RUN_UNREADABLE", "the run's state cannot be read by this release", "run_id")
        step = self._step(state, node)
        tuned = state.tuned.get(node)
        if not is_stalled(header):
            entry = self._places.entry(state, node)
            if entry is not None and entry.status.ended:
                raise precondition("NODE_ENDED", f"{node} has already ended as {entry.status.value}", "node")
        if kind is IntentKind.NODE_RETRY_POLICY:
            if step.type not in RETRIED:
                raise precondition("STEP_TYPE_WRONG", f"a {step.type.value} step has no retries", "node")
            known = tuned.retry if tuned is not None and tuned.retry is not None else step.retry
            return _merged(known, request.retry)
        if kind is IntentKind.NODE_TIMEOUT:
            if request.timeout_ms is None:
                raise invalid("FIELD_REQUIRED", "send the new timeout in milliseconds, 0 for none", "timeout_ms")
            return {"timeout_ms": request.timeout_ms}
        return None

    def _step(self, state: RunState, node: str) -> Step:
        definition = self._library.load(state.origin.tenant, state.origin.definition_id)[1]
        ref = node.partition("@")[0]
        step = next((step for step in definition.steps if step.ref == ref), None)
        if step is None or len(node) > MAX_NODE_ID:
            raise node_not_found()
        self._places.check(state, node)
        return step


def _merged(known: Retry, changes: dict[str, JSON] | None) -> JSON:
    if not changes:
        raise invalid("FIELD_REQUIRED", "send at least one field of the retry policy", "retry_max_attempts")
    return msgspec.to_builtins(msgspec.structs.replace(known, **changes))
