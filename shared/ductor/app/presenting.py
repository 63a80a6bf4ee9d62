"""Values, errors and waits of a run as readers may see them. Redaction happens here; nothing shown flows back."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

import msgspec

from ductor.app.views import ErrorView, WaitingOn
from ductor.engine.regions import enters
from ductor.expressions.redaction import redact
from ductor.model.definition import Definition, Step
from ductor.model.digest import DigestWait, Phase
from ductor.model.enums import NodeStatus, RedactionPolicy, StepType
from ductor.model.errors import StepError
from ductor.model.json import JSON
from ductor.model.payload import ROW_BYTES, Inline, Payload
from ductor.model.run import NodeState
from ductor.model.waiting import EventWait
from ductor.steps import approval

Load = Callable[[Payload], JSON]

_WAITS: Final = {
    StepType.APPROVAL: "approval",
    StepType.WAIT_EVENT: "event",
    StepType.EVENT_SET: "event_set",
    StepType.DIGEST: "digest",
    StepType.SUBWORKFLOW: "child",
    StepType.SCATTER: "child",
    StepType.BRIDGE: "bridge",
}
_STRICTER: Final = {RedactionPolicy.NONE: 0, RedactionPolicy.HASHED: 1, RedactionPolicy.OMIT: 2}


class Presenter:
    """Shows one run. A step that the definition does not know is treated as `hashed`."""

    def __init__(self, definition: Definition, load: Load, tenant_key: bytes) -> None:
        self.steps: Mapping[str, Step] = {step.ref: step for step in definition.steps}
        self._definition = definition
        self._load = load
        self._key = tenant_key

    def policy(self, node: str) -> RedactionPolicy:
        step = self.steps.get(node.partition("@")[0])
        return step.redaction_policy if step else RedactionPolicy.HASHED

    def value(self, node: str, value: JSON) -> JSON:
        """A value of a node under its redaction policy."""
        return redact(value, self.policy(node).value, self._key)

    def payload(self, node: str, payload: Payload) -> JSON:
        """The redacted value behind a payload; None for one over 8 KB, which is read on its own (`is_large`)."""
        return None if is_large(payload) else self.value(node, self._load(payload))

    def context(self, payload: Payload) -> JSON:
        """The run context. Each key has the strictest policy of the steps that write it."""
        value = self._load(payload)
        if not isinstance(value, dict):
            return {}
        policies = self._context_policies()
        hashed = RedactionPolicy.HASHED
        return {key: redact(item, policies.get(key, hashed).value, self._key) for key, item in value.items()}

    def edges(self, node: str, places: Iterable[int], *, into_items: bool) -> list[JSON]:
        """Edges out of a node, by their places among its own, or among those into the items of a scatter.

        The one from a scatter to its gather is nobody's to write, and left out.
        """
        ref = node.partition("@")[0]
        own = [
            edge
            for edge in self._definition.edges
            if edge.source_ref == ref and enters(self.steps[ref].type, edge.type) is into_items
        ]
        taken = [own[place] for place in places if place < len(own)]
        return [{"target_ref": edge.target_ref, "type": edge.type.wire} for edge in taken]

    def attributes(self, attributes: Mapping[str, JSON]) -> dict[str, JSON]:
        """Visibility attributes are made to be seen and searched; they are shown as they are."""
        return dict(attributes)

    def error(self, node: str, error: StepError | None) -> ErrorView | None:
        if error is None:
            return None
        details = None if error.details is None else self.value(node, error.details)
        return ErrorView(error.code, error.message, error.retryable, details)

    def _context_policies(self) -> dict[str, RedactionPolicy]:
        policies: dict[str, RedactionPolicy] = {}
        for step in self._definition.steps:
            for key in step.effects.context if step.effects else ():
                known = policies.get(key, RedactionPolicy.NONE)
                policies[key] = max(known, step.redaction_policy, key=_STRICTER.__getitem__)
        return policies


def is_large(payload: Payload) -> bool:
    """Whether a value is over 8 KB and therefore shown by reference."""
    return not isinstance(payload, Inline) and payload.size > ROW_BYTES


def waiting_on(ref: str, step: Step | None, node: NodeState) -> WaitingOn | None:
    """What a parked node waits for; None for a node that is not parked."""
    if node.status is NodeStatus.RETRYING:
        code = node.error.code if node.error else "a failure"
        detail = f"attempt {node.attempt + 1} of step {ref} after {code}"
        return WaitingOn(kind="retry", detail=detail, since=node.entered_at, deadline_at=node.deadline or None)
    if node.status is NodeStatus.PAUSED:
        detail = f"step {ref} is paused by an operator"
        return WaitingOn(kind="operator", detail=detail, since=node.held_at or node.entered_at, deadline_at=None)
    for_others = step is not None and step.type in _OUTSIDE and node.status is NodeStatus.SCHEDULED
    if node.status is not NodeStatus.WAITING and not for_others:
        return None
    kind = _WAITS.get(step.type, "timer") if step else "timer"
    return WaitingOn(
        kind=kind, detail=_detail(ref, step, node), since=node.entered_at, deadline_at=node.deadline or None
    )


def _detail(ref: str, step: Step | None, node: NodeState) -> str:
    """What the wait is for, in words."""
    if step is not None and step.type is StepType.APPROVAL:
        return f"step {ref}: a decision by {approval.parse_args(step.args).audience.describe()}"
    if step is not None and step.type is StepType.DIGEST:
        return f"step {ref}: {_digest(step, node)}"
    if step is not None and step.type in _EVENTS:
        inline = isinstance(node.input, Inline) and node.input.value
        told = _missing(step, msgspec.convert(inline, EventWait)) if inline else _named(step)
        return f"step {ref}: {', '.join(told)}"
    if step is not None and step.type is StepType.BRIDGE:
        who = f"worker {node.worker}" if node.worker else f"a worker for {step.args['task_type']}"
        return f"step {ref}: {who}"
    return f"step {ref}"


_EVENTS: Final = frozenset({StepType.WAIT_EVENT, StepType.EVENT_SET})
_OUTSIDE: Final = frozenset({StepType.SUBWORKFLOW, StepType.BRIDGE})


def _missing(step: Step, pause: EventWait) -> Iterator[str]:
    """The events that the pause still waits for. A correlation key is an address, shown unless values are omitted."""
    for place, one in enumerate(pause.on):
        left = one.count - (len(pause.collected[place]) if pause.collected else 0)
        if left > 0:
            times = f"{left} of " if left > 1 else ""
            key = "" if step.redaction_policy is RedactionPolicy.OMIT else f" for {one.correlation_key}"
            yield f"{times}event {one.event_name}{key}"


def _digest(step: Step, node: NodeState) -> str:
    """Which digest, and whether the run leads it. The key is an address, like a correlation key."""
    if not isinstance(node.input, Inline):
        return "the close of its digest"
    wait = msgspec.convert(node.input.value, DigestWait)
    key = "" if step.redaction_policy is RedactionPolicy.OMIT else f" {wait.key}"
    leads = wait.phase in (Phase.LEADING, Phase.CLOSING)
    return f"the close of digest{key}, {'which it leads' if leads else 'which another run leads'}"


def _named(step: Step) -> Iterator[str]:
    """The events that the definition names, for a pause too large to stand in the header."""
    requirements = step.args.get("requirements") or [step.args]
    yield from (f"event {requirement['event_name']}" for requirement in requirements)
