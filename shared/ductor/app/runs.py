"""Reads of runs, as people see them: always the caller's own tenant's, always redacted, never changing anything."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Final

import msgspec

from ductor.app.access import ANY_ENVIRONMENT, Caller, Scope, require
from ductor.app.ai_journal import Journal
from ductor.app.ai_views import AI_STEPS, with_conversations
from ductor.app.cursors import binding, page_size, seal, unseal
from ductor.app.handing import Elsewhere, Handing, Room
from ductor.app.headers import (
    HEAD,
    STALL,
    Stall,
    is_stalled,
    read_header,
    read_what_is_readable,
    run_pk,
    tenant_of,
)
from ductor.app.history import Numbered, read_history
from ductor.app.library import Library
from ductor.app.node_view import node_view
from ductor.app.pages import StaleRunError
from ductor.app.payloads import PayloadStore
from ductor.app.places import ItemNode, Places
from ductor.app.prefetch import prefetching
from ductor.app.presenting import Presenter, is_large
from ductor.app.refusals import invalid, node_not_found, precondition, run_not_found
from ductor.app.run_events import attempt_event, attempt_view, audit_view, scheduled, transition_event
from ductor.app.run_filter import RunFilter
from ductor.app.run_list import find_runs
from ductor.app.run_output import OutputTooLargeError, output_size, run_output
from ductor.app.run_summary import run_waits_on, summarise
from ductor.app.tenants import Tenants
from ductor.app.views import (
    AttemptPage,
    AuditPage,
    AuditView,
    EventPage,
    EventView,
    NodeView,
    RunPage,
    RunSummary,
    Snapshot,
    StallView,
)
from ductor.model.attempt import Attempt, attempt_sk
from ductor.model.definition import Definition, Step
from ductor.model.enums import NodeStatus
from ductor.model.json import JSON
from ductor.model.payload import NULL, Payload
from ductor.model.run import NodeState, RunState, effective_status
from ductor.model.transition import OperatorAudited
from ductor.ports import Item, Links, Table

READ_TRIES: Final = 5
"""How often a page of items is read again when the run moved on while it was being read."""

MAX_AUDIT_SCAN: Final = 5_000
"""Transitions looked at for one page of the audit trail."""

_MAX_ID_LENGTH: Final = 64
_MAX_NODE_LENGTH: Final = 256
_attempts = msgspec.json.Decoder(Attempt)
_stalls = msgspec.json.Decoder(Stall)


class Runs:
    """The runs of all tenants. Another tenant's run answers exactly as one that does not exist."""

    def __init__(
        self,
        *,
        table: Table,
        payloads: PayloadStore,
        library: Library,
        tenants: Tenants,
        links: Links | None = None,
    ) -> None:
        self._table = table
        self._handing = Handing(payloads, links)
        self._payloads = payloads
        self._library = library
        self._tenants = tenants
        self._places = Places(table, library)

    def list_runs(self, caller: Caller, wanted: RunFilter, limit: int | None, cursor: str | None) -> RunPage:
        """Runs by admission, newest first. A list may lag a moment behind; each entry shows the run as it is now."""
        require(caller, Scope.WORKFLOW_READ)
        found = find_runs(self._table, caller.tenant, wanted, limit, cursor)
        visible = [(item, state) for item, state in found.items if caller.may_read(state.origin.environment)]
        stalls = self._stall_notes([item for item, _ in visible])
        shown = [summarise(state, self._steps(state), stalls.get(state.run_id)) for _, state in visible]
        return RunPage(tuple(shown), found.next_cursor)

    def summary(self, caller: Caller, run_id: str) -> RunSummary:
        """The run without its nodes. Also for a run whose state this release cannot read."""
        require(caller, Scope.WORKFLOW_READ)
        item = self._item(caller, run_id)
        state = read_what_is_readable(item)
        if state is None:
            raise _unreadable()
        return summarise(state, self._steps(state), self._stall_notes([item]).get(run_id))

    def snapshot(self, caller: Caller, run_id: str) -> Snapshot:
        """Every node of the run's own scope with its latest output, error and what it waits for.

        The steps that a scatter repeats are read with `items`.
        """
        require(caller, Scope.WORKFLOW_READ)
        item, state = self._state(caller, run_id)
        definition = self._definition(state)
        presenter = self._presenter(state, definition, _outputs(state))
        return Snapshot(
            run_id=run_id,
            status=effective_status(state).value,
            transition_seq=state.seq,
            db_record_version=state.version,
            waiting_on=run_waits_on(state, presenter.steps),
            stalled=self._stall_notes([item]).get(run_id),
            nodes={view.node: view for view in self._nodes(state, definition, presenter)},
            context=presenter.context(state.context),
            checkpoints=dict(state.checkpoints),
        )

    def items(self, caller: Caller, run_id: str, scope: str, limit: int | None, cursor: str | None) -> Snapshot:
        """The snapshot with one step's nodes in the items of its scatter, page by page (`scope`: `charge@*`)."""
        require(caller, Scope.WORKFLOW_READ)
        size, bound_to = page_size(limit), binding(caller.tenant, ["items", run_id, scope])
        after = unseal(bound_to, cursor)
        for _ in range(READ_TRIES):
            item, state = self._state(caller, run_id)
            try:
                found, position = self._places.page(state, scope, size, after)
            except StaleRunError:
                continue
            return self._items(item, state, found, seal(bound_to, position) if position else None)
        raise StaleRunError(f"run {run_id} changes faster than it can be read")

    def _items(self, item: Item, state: RunState, found: list[ItemNode], more: str | None) -> Snapshot:
        entries = {node.id: node.entry for node in found}
        wanted = [entry.output for entry in entries.values() if not is_large(entry.output)]
        presenter = self._presenter(state, self._definition(state), wanted)
        claimed = self._latest(state, entries, presenter.steps)
        room = Room()
        views = [
            node_view(state, node.step, node.entry, presenter, claimed.get(node.id), node.id, room) for node in found
        ]
        return Snapshot(
            run_id=state.run_id,
            status=effective_status(state).value,
            transition_seq=state.seq,
            db_record_version=state.version,
            waiting_on=run_waits_on(state, presenter.steps),
            stalled=self._stall_notes([item]).get(state.run_id),
            nodes={view.node: view for view in views},
            context=presenter.context(state.context),
            checkpoints=dict(state.checkpoints),
            next_cursor=more,
        )

    def steps(self, caller: Caller, run_id: str) -> tuple[NodeView, ...]:
        """The nodes in the order of the definition."""
        require(caller, Scope.WORKFLOW_READ)
        _, state = self._state(caller, run_id)
        definition = self._definition(state)
        return tuple(self._nodes(state, definition, self._presenter(state, definition, _outputs(state))))

    def events(self, caller: Caller, run_id: str, limit: int | None, cursor: str | None) -> EventPage:
        """History, oldest first: transitions and audit entries, each attempt after the entry that handed it out.

        `limit` counts transitions; the attempts among them come on top.
        """
        require(caller, Scope.WORKFLOW_READ)
        _, state = self._state(caller, run_id)
        size, bound_to = page_size(limit), binding(caller.tenant, ["events", run_id])
        entries = list(islice(read_history(self._table, state, _number(unseal(bound_to, cursor))), size + 1))
        shown = entries[:size]
        presenter = self._presenter(state, self._definition(state), _payloads_of(shown))
        more = seal(bound_to, str(shown[-1].seq)) if len(entries) > size else None
        return EventPage(tuple(self._events(state, presenter, shown)), more)

    def attempts(
        self, caller: Caller, run_id: str, limit: int | None, cursor: str | None, node: str = ""
    ) -> AttemptPage:
        """Every recorded attempt, by node and number; those of one node only, if it is named.

        Steps that run inside the coordinator have none.
        """
        require(caller, Scope.WORKFLOW_READ)
        _, state = self._state(caller, run_id)
        if node and (len(node) > _MAX_NODE_LENGTH or node.partition("@")[0] not in self._steps(state)):
            raise node_not_found()
        size, bound_to = page_size(limit), binding(caller.tenant, ["attempts", run_id, *([node] if node else [])])
        after = unseal(bound_to, cursor)
        prefix = f"A#{node}#" if node else "A#"
        page = self._table.query(run_pk(run_id), low=after or prefix, high=f"{prefix}~", limit=size + 2)
        rows = [item for item in page.items if item.sk != after]
        recorded = [_attempts.decode(item.body) for item in rows[:size]]
        presenter = self._presenter(state, self._definition(state), [attempt.task.input for attempt in recorded])
        plain = [attempt_view(presenter, attempt) for attempt in recorded]
        shown = with_conversations(plain, run_id, Journal(self._table, self._payloads), presenter)
        more = seal(bound_to, rows[size - 1].sk) if len(rows) > size else None
        return AttemptPage(tuple(shown), more)

    def audit(self, caller: Caller, run_id: str, limit: int | None, cursor: str | None) -> AuditPage:
        """What became of operators' requests, oldest first. A page may be short and still have a next one."""
        require(caller, Scope.WORKFLOW_READ)
        _, state = self._state(caller, run_id)
        size, bound_to = page_size(limit), binding(caller.tenant, ["audit", run_id])
        found: list[AuditView] = []
        after = _number(unseal(bound_to, cursor))
        for scanned, entry in enumerate(read_history(self._table, state, after)):
            if len(found) == size or scanned == MAX_AUDIT_SCAN:
                return AuditPage(tuple(found), seal(bound_to, str(after)))
            after = entry.seq
            if isinstance(entry.transition, OperatorAudited):
                found.append(audit_view(entry, entry.transition))
        return AuditPage(tuple(found), None)

    def node_output(self, caller: Caller, run_id: str, node: str) -> JSON | Elsewhere:
        """The latest output of a node as it is, unredacted: for programs. None while there is none."""
        require(caller, Scope.WORKFLOW_READ)
        _, state = self._state(caller, run_id)
        if node.partition("@")[0] not in self._steps(state):
            raise node_not_found()
        entry = self._places.entry(state, node)
        return self._handing.payload(run_id, entry.output) if entry else None

    def output(self, caller: Caller, run_id: str) -> JSON | Elsewhere:
        """The run's output as it is, unredacted: for programs.

        FAILED_PRECONDITION `RUN_NOT_FINISHED` before its end, `OUTPUT_TOO_LARGE` when its last steps gave over 5 MB.
        """
        require(caller, Scope.WORKFLOW_READ)
        _, state = self._state(caller, run_id)
        if not state.status.terminal:
            raise precondition("RUN_NOT_FINISHED", f"the run is {effective_status(state).value}; it has no output yet")
        if self._handing.is_elsewhere(state.output):
            return self._handing.payload(run_id, state.output)
        definition = self._definition(state)
        try:
            value = run_output(definition, state, lambda payload: self._payloads.load(run_id, payload))
            return self._handing.value(run_id, value, output_size(definition, state))
        except OutputTooLargeError as fault:
            raise precondition("OUTPUT_TOO_LARGE", str(fault)) from fault

    def input(self, caller: Caller, run_id: str) -> JSON:
        """What the run was started with (`TRIGGER.payload`), unredacted."""
        require(caller, Scope.WORKFLOW_READ)
        _, state = self._state(caller, run_id)
        return self._payloads.load(run_id, state.origin.input)

    def _item(self, caller: Caller, run_id: str) -> Item:
        return header_of(self._table, caller, run_id)

    def _state(self, caller: Caller, run_id: str) -> tuple[Item, RunState]:
        item = self._item(caller, run_id)
        try:
            return item, read_header(item)
        except (msgspec.DecodeError, msgspec.ValidationError) as error:
            raise _unreadable() from error

    def _definition(self, state: RunState) -> Definition:
        return self._library.load(state.origin.tenant, state.origin.definition_id)[1]

    def _steps(self, state: RunState) -> dict[str, Step]:
        return {step.ref: step for step in self._definition(state).steps}

    def _presenter(self, state: RunState, definition: Definition, wanted: Iterable[Payload] = ()) -> Presenter:
        """`wanted` are payloads that will be shown, so that they are read in one go."""
        load = prefetching(self._table, self._payloads, state.run_id, wanted)
        return Presenter(definition, load, self._tenants.redaction_key(state.origin.tenant))

    def _stall_notes(self, items: Sequence[Item]) -> dict[str, StallView]:
        """Why the stalled ones among these runs are stalled, by run id."""
        rows = self._table.batch_get([(item.pk, STALL) for item in items if is_stalled(item)])
        notes = {pk.removeprefix("R#"): _stalls.decode(row.body) for (pk, _), row in rows.items()}
        return {run_id: StallView(note.reason, note.since) for run_id, note in notes.items()}

    def _nodes(self, state: RunState, definition: Definition, presenter: Presenter) -> list[NodeView]:
        claimed = self._latest(state, state.root.nodes, presenter.steps)
        untouched, room = NodeState(), Room()
        views = []
        repeated = self._places.repeated(state, definition)
        for step in definition.steps:
            if step.ref in repeated:
                continue
            node = state.root.nodes.get(step.ref, untouched)
            views.append(node_view(state, step, node, presenter, claimed.get(step.ref), step.ref, room))
        return views

    def _latest(self, state: RunState, nodes: Mapping[str, NodeState], steps: Mapping[str, Step]) -> dict[str, Attempt]:
        """The latest attempts that a worker has taken: of nodes that are handed out, and of those that ask models."""
        pk = run_pk(state.run_id)
        keys = [
            (pk, attempt_sk(ref, node.attempt))
            for ref, node in nodes.items()
            if node.status is NodeStatus.SCHEDULED or (node.attempt and steps[ref.partition("@")[0]].type in AI_STEPS)
        ]
        attempts = [_attempts.decode(item.body) for item in self._table.batch_get(keys).values()]
        return {attempt.task.node: attempt for attempt in attempts if attempt.started_at}

    def _events(self, state: RunState, presenter: Presenter, entries: list[Numbered]) -> list[EventView]:
        pk = run_pk(state.run_id)
        keys = {entry.seq: (pk, attempt_sk(out.node, out.attempt)) for entry, out in scheduled(entries)}
        rows = self._table.batch_get(list(keys.values()))
        shown: list[EventView] = []
        for entry in entries:
            shown.append(transition_event(presenter, entry))
            row = rows.get(keys[entry.seq]) if entry.seq in keys else None
            if row is not None:
                view = attempt_view(presenter, _attempts.decode(row.body), entry.at)
                shown.append(attempt_event(entry.seq, view, entry.at))
        return shown


def header_of(table: Table, caller: Caller, run_id: str) -> Item:
    """The header row of the caller's run; NOT_FOUND for unknown, malformed and other tenants' ids alike."""
    if not 0 < len(run_id) <= _MAX_ID_LENGTH or not run_id.isascii():
        raise run_not_found()
    item = table.get(run_pk(run_id), HEAD)
    if item is None or tenant_of(item) != caller.tenant or not _may_read(caller, item):
        raise run_not_found()
    return item


def _may_read(caller: Caller, item: Item) -> bool:
    """Whether the key may see the run's environment. Of a run that cannot be read it is not known."""
    if ANY_ENVIRONMENT in caller.environments_read:
        return True
    state = read_what_is_readable(item)
    return state is not None and caller.may_read(state.origin.environment)


def _outputs(state: RunState) -> list[Payload]:
    """The outputs that a page of nodes shows."""
    return [node.output for node in state.root.nodes.values() if not is_large(node.output)]


def _payloads_of(entries: Sequence[Numbered]) -> list[Payload]:
    fields = [getattr(entry.transition, name, NULL) for entry in entries for name in ("input", "output")]
    return [payload for payload in fields if not is_large(payload)]


def _number(position: str | None) -> int:
    if position is None:
        return 0
    if not position.isdecimal():
        raise invalid("CURSOR_INVALID", "this cursor belongs to another list; start again without one", "cursor")
    return int(position)


def _unreadable() -> Exception:
    message = "this release cannot read the stored state of the run; deploy the one that wrote it, or terminate the run"
    return precondition("STATE_UNREADABLE", message)
