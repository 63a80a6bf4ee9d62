"""Compensation and hook runs: built from what a run planned in its last tick, begun once, never touching that run.

Such a run needs a definition like any other. It is generated from the targets' shape alone, so that runs which plan
the same share it; the rendered args are the run's input. Its row is stored before the run, under an id that is a digest
of its content, and shows as archived: nobody can trigger it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from typing import Any, Final

import msgspec

from ductor.app.cache import Cache
from ductor.app.descent import Descent
from ductor.app.library import plan_item, row_item
from ductor.engine.closing import FINALLY, IGNORE, STOP, Target
from ductor.engine.graph import Graph
from ductor.model.command import Command, StartLinked
from ductor.model.definition import Compensation, Definition, DefinitionRow, Edge, Step
from ductor.model.enums import DefinitionStatus, EdgeType, OnError, RedactionPolicy, StepType
from ductor.model.intent import Intent, IntentKind
from ductor.model.json import JSON
from ductor.model.lineage import COMPENSATION, HOOK, Linked, linked_run_id, step_of
from ductor.model.payload import NULL
from ductor.model.run import Origin, RunState
from ductor.ports import Expect, Put, Table

_WORDS: Final = {FINALLY: "finally", HOOK: "hook"}
_TITLES: Final = {COMPENSATION: "Compensation", HOOK: "Hook"}


class LinkedRuns:
    """Begins the runs that follow the end of others. Not thread-safe."""

    def __init__(self, descent: Descent, table: Table) -> None:
        self._descent = descent
        self._table = table
        self._stored: Cache[str, bool] = Cache(256)

    def start(self, graph: Graph, state: RunState, command: Command, mark: str) -> Iterable[Intent]:
        """Begin the planned run. As soon as it is stored it cannot get lost, and the run that planned it is told so."""
        assert isinstance(command, StartLinked)
        linked = state.linked.get(command.kind)
        if linked is None:
            return ()
        targets = msgspec.convert(self._descent.load(state.run_id, linked.plan), tuple[Target, ...])
        names = _names(targets)
        kind = command.kind.partition(":")[0]
        definition = _definition(graph.definition, kind, targets, names)
        definition_id = self._keep(state.origin, definition)
        origin = self._origin(state, kind, linked, definition_id, _input(targets, names))
        self._descent.begin(origin, state.run_id)
        return (Intent(mark, state.run_id, IntentKind.DUTY_DONE, self._descent.now, body=command.kind),)

    def _keep(self, origin: Origin, definition: Definition) -> str:
        """Store the generated definition unless it is; its id."""
        digest = hashlib.sha256(msgspec.json.encode(definition, order="sorted")).hexdigest()
        definition_id = f"generated-{digest[:40]}"
        if self._stored.get(f"{origin.tenant}/{definition_id}") is None:
            row = DefinitionRow(
                id=definition_id,
                tenant=origin.tenant,
                family_slug=definition.family_slug,
                status=DefinitionStatus.ARCHIVED,
                version=origin.definition_version,
                document={"family_slug": definition.family_slug, "title": definition.title, "steps": []},
                created_at=self._descent.now,
            )
            self._table.write(
                tuple(
                    Put(item, Expect.ABSENT) for item in (row_item(row, 1), plan_item(row.tenant, row.id, definition))
                )
            )
            self._stored.put(f"{origin.tenant}/{definition_id}", True)
        return definition_id

    def _origin(self, state: RunState, kind: str, linked: Linked, definition_id: str, value: JSON) -> Origin:
        own, run_id = state.origin, linked_run_id(state.run_id, kind, linked.seq)
        return msgspec.structs.replace(
            own,
            run_id=run_id,
            kind=kind,
            definition_id=definition_id,
            created_at=self._descent.now,
            root_run_id=own.root_run_id or own.run_id,
            parent_run_id=own.run_id,
            parent_node="",
            parent_attempt=0,
            parent_generation=0,
            detached=True,
            source_run_id="",
            input=self._descent.keep(run_id, value),
            variables=NULL,
            seed_context=NULL,
            event=None,
            scheduled_at=0,
        )


def _names(targets: Sequence[Target]) -> tuple[str, ...]:
    """A step ref for each target, by what it is for: `undo-charge`, `finally-unlock`, with a number when repeated."""
    seen: dict[str, int] = {}
    names: list[str] = []
    for target in targets:
        node = target.step.replace("@", "-").replace(".", "-")
        name = f"{_WORDS.get(target.group, 'undo')}-{node}"
        seen[name] = seen.get(name, 0) + 1
        names.append(name if seen[name] == 1 else f"{name}.{seen[name]}")
    return tuple(names)


def _definition(source: Definition, kind: str, targets: Sequence[Target], names: Sequence[str]) -> Definition:
    """One step after the other: inverses first, then what always runs."""
    policies = {step.ref: step.redaction_policy for step in source.steps}
    steps = [_step(target, name, policies) for target, name in zip(targets, names, strict=True)]
    return Definition(
        family_slug=source.family_slug,
        environment=source.environment,
        title=f"{_TITLES[kind]} of {source.family_slug}",
        steps=tuple(steps),
        edges=tuple(_edges(targets, names)),
    )


def _step(target: Target, name: str, policies: dict[str, RedactionPolicy]) -> Step:
    """The args come from the input. Those that could not be rendered are not in it, which fails the step."""
    return Step(
        ref=name,
        type=StepType.ACTION,
        action=target.action,
        args=f'${{{{ TRIGGER.payload.args["{name}"] }}}}',
        connection_ref=f'${{{{ TRIGGER.payload.connections["{name}"] }}}}' if target.connection_ref else "",
        connection_ref_mode="direct" if target.connection_ref else "",
        retry=target.retry,
        timeout_ms=target.timeout_ms,
        on_error=OnError.CONTINUE if target.policy == IGNORE else OnError.FAIL,
        compensation=Compensation(failure_policy=target.policy),
        redaction_policy=policies.get(step_of(target.step), RedactionPolicy.HASHED),
    )


def _edges(targets: Sequence[Target], names: Sequence[str]) -> Iterable[Edge]:
    """A failed inverse that stops the rest still leads to the first of what always runs."""
    first_final = next((place for place, target in enumerate(targets) if target.group == FINALLY), None)
    for place, target in enumerate(targets[:-1]):
        stops = target.policy == STOP and target.group != FINALLY
        kind = EdgeType.SUCCESS if stops else EdgeType.DONE
        yield Edge(source_ref=names[place], target_ref=names[place + 1], type=kind)
        if stops and first_final is not None:
            yield Edge(source_ref=names[place], target_ref=names[first_final], type=EdgeType.ERROR)


def _input(targets: Sequence[Target], names: Sequence[str]) -> JSON:
    args: dict[str, Any] = {}
    connections: dict[str, Any] = {}
    errors: dict[str, Any] = {}
    for target, name in zip(targets, names, strict=True):
        if target.error is not None:
            errors[name] = {"code": target.error.code, "message": target.error.message}
            continue
        args[name] = target.args
        if target.connection_ref:
            connections[name] = target.connection_ref
    return {"args": args, "connections": connections, "errors": errors}
