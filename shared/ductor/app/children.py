"""Child runs of subworkflow steps: begun, looked after, closed, and reported to their parents.

A child is to its parent what a row is to an attempt: the place where the end is known first. Everything here may be
repeated; what is deterministically refused becomes a failed command of the step.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec

from ductor.app.admission import check_size, frozen_variables
from ductor.app.descent import Descent, readable
from ductor.app.gate import Gate
from ductor.app.library import Library
from ductor.app.run_output import OutputTooLargeError, run_output
from ductor.app.slot_admission import SlotAdmission
from ductor.engine.evolve import ABANDON
from ductor.engine.graph import Graph
from ductor.engine.scopes import find
from ductor.model.attempt import AttemptStatus
from ductor.model.command import CloseChild, Command, TellParent
from ductor.model.definition import Definition
from ductor.model.enums import NodeStatus, RunStatus
from ductor.model.errors import ErrorCode, RefusedError, StepError, clip, refuse
from ductor.model.intent import Intent, IntentKind
from ductor.model.json import JSON
from ductor.model.lineage import MAX_NESTING, PARENT_DUTY, child_key, child_run_id, step_of
from ductor.model.payload import NULL, Inline, Payload
from ductor.model.run import NodeState, Origin, RunState
from ductor.steps.subworkflow import Plan

_ENDS: Final = {
    RunStatus.COMPLETED: AttemptStatus.SUCCEEDED,
    RunStatus.MERGED: AttemptStatus.SUCCEEDED,
    RunStatus.TIMED_OUT: AttemptStatus.TIMED_OUT,
}


class Children:
    """Carries out the attempts of subworkflow steps (`AttemptDoor`), and the commands about children and parents."""

    def __init__(self, descent: Descent, library: Library, gate: Gate | None, slots: SlotAdmission) -> None:
        self._descent = descent
        self._slots = slots
        self._library = library
        self._gate = gate

    def start(
        self, graph: Graph, state: RunState, node: str, attempt: int, generation: int, mark: str
    ) -> Iterable[Intent]:
        """Begin the child of this attempt. A reply only if that is refused, or if nobody waits for its end."""
        entry = _awaited(graph, state, node, attempt)
        if entry is None:
            return ()
        try:
            origin = self._origin(graph, state, entry, node)
            self._require_slot(origin)
        except RefusedError as refused:
            code = refused.violations[0].code if refused.violations else refused.error_code.value
            error = StepError(code, clip(refused.message, 256), retryable=False)
            return (_reply(f"{mark}:refused", state, node, entry, IntentKind.COMMAND_FAILED, error=error),)
        self._descent.begin(origin, state.run_id)
        return () if _plan(graph, node).wait else (_admitted(mark, state, node, entry, origin.run_id),)

    def _require_slot(self, origin: Origin) -> None:
        """Refuse a child that its definition's concurrency would drop. One that has begun is judged no more."""
        definition = self._library.load(origin.tenant, origin.definition_id)[1]
        if definition.concurrency is not None and self._descent.header(origin.run_id) is None:
            self._slots.require_room(RunState(origin=origin), definition)

    def check(
        self, graph: Graph, state: RunState, node: str, attempt: int, generation: int, mark: str
    ) -> Iterable[Intent]:
        """What the child's header says: its end, if it has one; a child that is not there is begun."""
        entry = _awaited(graph, state, node, attempt)
        if entry is None:
            return ()
        item = self._descent.newest(child_run_id(state.run_id, node, attempt, generation))
        if item is None:
            return self.start(graph, state, node, attempt, generation, mark)
        child = readable(item)
        if not _plan(graph, node).wait:
            return (_admitted(mark, state, node, entry, item.pk.removeprefix("R#")),)
        if child is not None and _over(child):
            return (self._finished(child, mark),)
        self._descent.restart(item)
        return ()

    def revoke(
        self, graph: Graph, state: RunState, node: str, attempt: int, generation: int, mark: str
    ) -> Iterable[Intent]:
        """Nobody wants the attempt any more: its child follows the policy, and the node hears how that went."""
        policy = _plan(graph, node).policy
        entry = _awaited(graph, state, node, attempt) or NodeState(attempt=attempt, generation=generation)
        if policy == ABANDON:
            return (_reply(mark, state, node, entry, IntentKind.ATTEMPT_FINISHED, AttemptStatus.REVOKED),)
        item = self._descent.newest(child_run_id(state.run_id, node, attempt, generation))
        if item is None:
            return (_reply(mark, state, node, entry, IntentKind.CHILD_FINISHED, AttemptStatus.REVOKED),)
        return self._close(state, item.pk.removeprefix("R#"), readable(item), policy, mark)

    def close(self, _graph: Graph, state: RunState, command: Command, mark: str) -> Iterable[Intent]:
        """Close a child that no node waits for, or tell this run that it has ended."""
        assert isinstance(command, CloseChild)
        node, attempt, generation = command.node, command.attempt, command.generation
        policy = state.children.get(child_key(node, attempt, generation), ABANDON)
        if policy == ABANDON:
            return ()
        item = self._descent.newest(child_run_id(state.run_id, node, attempt, generation))
        if item is None:
            entry = NodeState(attempt=attempt, generation=generation)
            return (_reply(mark, state, node, entry, IntentKind.CHILD_FINISHED, AttemptStatus.REVOKED),)
        return self._close(state, item.pk.removeprefix("R#"), readable(item), policy, mark)

    def _close(
        self, state: RunState, child_id: str, child: RunState | None, policy: str, mark: str
    ) -> Iterable[Intent]:
        if child is not None and _over(child):
            return (self._finished(child, mark),)
        how = "terminate" if state.status is RunStatus.TERMINATED else policy
        reason = f"the parent run {state.run_id} no longer waits"
        # Always the same id: a stalled child keeps it once, however often it is told.
        told = f"{child_id}:closed:{how}"
        self._descent.tell(Intent(told, child_id, IntentKind.PARENT_CLOSED, self._descent.now, reason=reason, body=how))
        return ()

    def tell_parent(self, _graph: Graph, state: RunState, command: Command, mark: str) -> Iterable[Intent]:
        """Report the end to the parent. With `check` only if its header does not show that it knows."""
        assert isinstance(command, TellParent)
        if not command.check:
            return (self._finished(state, mark),)
        item = self._descent.header(state.origin.parent_run_id)
        parent = readable(item) if item is not None else None
        if item is not None and parent is None:
            return ()
        if parent is not None and _key_of(state.origin) in parent.children:
            return (self._finished(state, mark),)
        return (Intent(mark, state.run_id, IntentKind.DUTY_DONE, self._descent.now, body=PARENT_DUTY),)

    def _finished(self, child: RunState, mark: str) -> Intent:
        """The end of a child as its parent hears it. The output is stored with the parent first."""
        origin = child.origin
        status = _ENDS.get(child.status, AttemptStatus.FAILED)
        error = None if status is AttemptStatus.SUCCEEDED else _error(child)
        output: Payload = NULL
        if status is AttemptStatus.SUCCEEDED and not origin.detached:
            try:
                output = self._output(child)
            except OutputTooLargeError as fault:
                status, error = AttemptStatus.FAILED, StepError("OUTPUT_TOO_LARGE", str(fault), retryable=False)
        return Intent(
            id=mark,
            run_id=origin.parent_run_id,
            kind=IntentKind.CHILD_FINISHED,
            at=self._descent.now,
            node=origin.parent_node,
            attempt=origin.parent_attempt,
            generation=origin.parent_generation,
            status=status,
            output=output,
            error=error,
        )

    def _output(self, child: RunState) -> Payload:
        """What the child gives, as everybody sees it, stored with the parent."""
        source, target = child.run_id, child.origin.parent_run_id
        if child.output != NULL:
            return self._descent.copy(source, child.output, target)
        definition = self._library.load(child.origin.tenant, child.origin.definition_id)[1]
        value = run_output(definition, child, lambda payload: self._descent.load(source, payload))
        return self._descent.keep(target, value)

    def _origin(self, graph: Graph, state: RunState, entry: NodeState, node: str) -> Origin:
        """Everything the child starts with. Raises RefusedError for what would be refused for ever."""
        own = state.origin
        if own.nesting_depth >= MAX_NESTING:
            raise too_deep()
        row, definition = self._library.load(own.tenant, graph.definition.pins.get(step_of(node), ""))
        value = self._descent.load(state.run_id, entry.input)
        check_size(value, "input")
        _check_input(definition, value)
        run_id = child_run_id(state.run_id, node, entry.attempt, entry.generation)
        environment = self._gate.enter(own.tenant, definition).variables if self._gate else {}
        variables: JSON = frozen_variables(definition, {}, environment)
        return msgspec.structs.replace(
            own,
            run_id=run_id,
            definition_id=row.id,
            family_slug=row.family_slug,
            definition_version=row.version,
            created_at=self._descent.now,
            environment=definition.environment,
            parent_run_id=state.run_id,
            parent_node=node,
            parent_attempt=entry.attempt,
            parent_generation=entry.generation,
            detached=not _plan(graph, node).wait,
            source_run_id="",
            nesting_depth=own.nesting_depth + 1,
            input=self._descent.copy(state.run_id, entry.input, run_id),
            variables=self._descent.keep(run_id, variables),
            seed_context=NULL,
            event=None,
            scheduled_at=0,
        )


def too_deep() -> RefusedError:
    message = f"subworkflows nest at most {MAX_NESTING} deep"
    return refuse(ErrorCode.FAILED_PRECONDITION, "NESTING_TOO_DEEP", message)


def _check_input(definition: Definition, value: JSON) -> None:
    if definition.input_schema is not None:
        # The validator is heavy, and a process that never begins such a child must not pay for it.
        from ductor.app.input_schema import check_input

        check_input(definition, value)


def _awaited(graph: Graph, state: RunState, node: str, attempt: int) -> NodeState | None:
    """The node's entry while this attempt is the one it waits for."""
    place = find(graph, state, node)
    entry = place.entry if place else None
    waits = entry is not None and entry.status is NodeStatus.SCHEDULED and entry.attempt == attempt
    return entry if waits else None


def _over(child: RunState) -> bool:
    """Whether the child has ended for good, and not only moved on to a successor that is not there yet."""
    return child.status.terminal and child.successor is None


def _plan(graph: Graph, node: str) -> Plan:
    plan: Plan = graph.by_ref[step_of(node)].args
    return plan


def _key_of(origin: Origin) -> str:
    return child_key(origin.parent_node, origin.parent_attempt, origin.parent_generation)


def _admitted(mark: str, state: RunState, node: str, entry: NodeState, child_id: str) -> Intent:
    output = Inline({"run_id": child_id})
    status = AttemptStatus.SUCCEEDED
    return _reply(f"{mark}:admitted", state, node, entry, IntentKind.ATTEMPT_FINISHED, status, output)


def _reply(
    intent_id: str,
    state: RunState,
    node: str,
    entry: NodeState,
    kind: IntentKind,
    status: AttemptStatus | None = None,
    output: Payload = NULL,
    error: StepError | None = None,
) -> Intent:
    return Intent(
        id=intent_id,
        run_id=state.run_id,
        kind=kind,
        node=node,
        attempt=entry.attempt,
        generation=entry.generation,
        status=status,
        output=output,
        error=error,
    )


def _error(child: RunState) -> StepError:
    """A child that somebody stopped is not tried again; one that failed may be."""
    stopped = child.status in (RunStatus.CANCELLED, RunStatus.TERMINATED)
    why = f"{child.error.code}: {child.error.message}" if child.error else child.reason
    message = f"run {child.run_id} ended as {child.status.value}{': ' if why else ''}{why}"
    return StepError(f"CHILD_{child.status.value.upper()}", clip(message, 256), retryable=not stopped)
