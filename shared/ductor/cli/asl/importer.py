"""A whole state machine as a definition: walks the states in order, and puts branches and maps into one graph."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

from ductor.cli.asl import payloads
from ductor.cli.asl.flow import Document, Flow, Piece, Way, is_list_of_objects, listed, target_of
from ductor.cli.asl.report import Report
from ductor.cli.asl.states import KNOWN, States
from ductor.cli.asl.values import Data, NotCarriedError, json_path, step_output

LISTS: Final = ("Branches", "Choices", "Retry", "Catch")
"""Fields of a state that hold lists of objects."""


def convert(machine: Document, slug: str) -> tuple[Document, Report]:
    """The definition, and what a person should look at. Never raises for a JSON object, however odd it is."""
    importer = _Importer(machine)
    exits = importer.region(machine, [], Data("TRIGGER.payload"), "definition")
    document: Document = {"family_slug": slug}
    comment = machine.get("Comment")
    if isinstance(comment, str) and comment:
        document["title"] = comment[:200]
    document |= {"steps": importer.flow.steps, "edges": importer.flow.edges}
    if isinstance(machine.get("TimeoutSeconds"), int):
        document["run_timeout_ms"] = machine["TimeoutSeconds"] * 1000
    ends = [way for way in exits if way.kind == "success"]
    if len(ends) == 1:
        try:
            document["output"] = f"${{{{ {ends[0].data.at(())} }}}}"
        except NotCarriedError as why:
            importer.flow.report.manual("definition", "output", str(why))
    elif ends:
        importer.flow.report.note(
            "definition", "output", "the run's output holds the outputs of its last steps, by ref"
        )
    return document, importer.flow.report


class _Importer:
    def __init__(self, machine: Document) -> None:
        self.flow = Flow(Report())
        self._states = States(self.flow, machine.get("QueryLanguage", "JSONPath") != "JSONata")

    def region(self, machine: Document, into: list[Way], data: Data, place: str) -> list[Way]:
        """Import the states of a machine, a branch or a map's body. The ways out of it."""
        given = machine.get("States")
        states = (
            {name: state for name, state in given.items() if isinstance(state, dict)} if isinstance(given, dict) else {}
        )
        start = target_of(machine, "StartAt")
        if start is None or start not in states:
            self.flow.report.manual(place, "StartAt", "names no state")
            return []
        arrivals: dict[str, list[Way]] = {start: list(into)}
        exits: list[Way] = []
        placed: set[str] = set()
        for name in _in_order(states, start, self.flow.report):
            incoming = arrivals.get(name, [])
            if not incoming and name != start:
                continue
            here = self.flow.merged(incoming, name) if incoming else data
            piece = self._piece(name, states[name], incoming, here)
            for way in incoming:
                for entry in piece.entries:
                    self.flow.connect(way, entry)
            placed.add(name)
            for way in piece.ways:
                if way.target is None:
                    exits.append(way)
                elif way.target in states and way.target not in placed:
                    arrivals.setdefault(way.target, []).append(way)
        return exits

    def _piece(self, name: str, state: Document, incoming: list[Way], data: Data) -> Piece:
        for field in LISTS:
            if field in state and not is_list_of_objects(state[field]):
                self.flow.report.manual(name, field, "must be a list of objects; what is none was left out")
        try:
            return self._converted(name, state, incoming, data)
        except (AttributeError, KeyError, OverflowError, TypeError, ValueError) as fault:
            self.flow.report.manual(name, "", f"a field has not the form that ASL gives it ({fault})")
            return Piece((), ())

    def _converted(self, name: str, state: Document, incoming: list[Way], data: Data) -> Piece:
        kind = state.get("Type")
        if kind == "Parallel":
            return self._parallel(name, state, incoming, data)
        if kind == "Map":
            return self._map(name, state, data)
        convert_state = self._states.kinds.get(str(kind))
        if convert_state is None:
            self.flow.report.manual(name, "Type", f"{kind!r} is none of {', '.join(KNOWN)}")
            return Piece((), ())
        return convert_state(name, state, data)

    def _parallel(self, name: str, state: Document, incoming: list[Way], data: Data) -> Piece:
        seen = self._states.input_of(name, state, data)
        join = self.flow.ref(name)
        first = len(self.flow.steps)
        branches = [
            self.region(branch, incoming, seen, f"{name}.Branches[{place}]")
            for place, branch in enumerate(listed(state, "Branches"))
        ]
        inside = [str(step["ref"]) for step in self.flow.steps[first:]]
        outputs = [self._whole(name, exits) for exits in branches]
        single = all(len(exits) == 1 for exits in branches)
        args = {"operation": "project", "project": {"branches": f"[{', '.join(outputs)}]"}}
        self.flow.add(join, "dataflow", args, title=name if name != join else None, join="all" if single else None)
        for exits in branches:
            for way in exits:
                self.flow.connect(way, join)
        if state.get("Retry"):
            self.flow.report.manual(name, "Retry", "a Parallel is not retried as a whole; give its steps retries")
        after = self._states.output_of(name, state, data, seen, step_output(join, "result", "branches"))
        caught = self._caught_inside(name, inside, state, data)
        return Piece((), (self._states.next_way(join, state, after), *caught))

    def _caught_inside(self, name: str, inside: list[str], state: Document, data: Data) -> Iterator[Way]:
        """A catcher of a Parallel takes the failure of any step inside that handles none itself."""
        if not state.get("Catch"):
            return
        self.flow.report.note(name, "Catch", "became an error edge of every step inside; the other branches run on")
        handled = {edge["source_ref"] for edge in self.flow.edges if edge["type"] in ("error", "timeout")}
        kinds = {step["ref"]: step["type"] for step in self.flow.steps}
        for ref in inside:
            if ref not in handled and kinds[ref] in ("action", "dataflow", "condition"):
                yield from self._states.caught(ref, name, state, data)

    def _map(self, name: str, state: Document, data: Data) -> Piece:
        seen = self._states.input_of(name, state, data)
        scatter, gather = self.flow.ref(name), self.flow.ref(f"{name}_results")
        by_path = self._states.by_path(state)
        args: Document = {"items_expr": self._items(name, state, seen, by_path)}
        self._limits(name, state, args)
        self.flow.add(scatter, "scatter", args, title=name if name != scatter else None)
        body = state.get("ItemProcessor") or state.get("Iterator") or {}
        item = self._item(name, state, seen, by_path)
        exits = self.region(body, [Way(scatter, item)], item, f"{name}.ItemProcessor")
        self.flow.add(gather, "gather", {"policy": "all", "output_expr": self._whole(name, exits)})
        for way in exits:
            self.flow.connect(way, gather)
        if (body.get("ProcessorConfig") or {}).get("Mode") == "DISTRIBUTED":
            self.flow.report.note(name, "ItemProcessor", "distributed mode is not needed: 10,000 items run in one run")
        for field in ("ItemReader", "ItemBatcher", "ResultWriter", "Retry"):
            if field in state:
                self.flow.report.manual(name, field, "has no counterpart; do it in steps before or after")
        after = self._states.output_of(name, state, data, seen, step_output(gather, "results"))
        return Piece(
            (scatter,), (self._states.next_way(gather, state, after), *self._states.caught(scatter, name, state, data))
        )

    def _items(self, name: str, state: Document, data: Data, by_path: bool) -> str:
        given: Any = state.get("ItemsPath", "$") if by_path else state.get("Items")

        def cel() -> str:
            if by_path:
                return json_path(str(given), data)
            return data.at(()) if given is None else payloads.as_cel(given, data, by_path=False)

        return str(self._states.carried(name, "ItemsPath", cel, "[]"))

    def _item(self, name: str, state: Document, data: Data, by_path: bool) -> Data:
        """What `$` is inside of the map."""
        selector = state.get("ItemSelector", state.get("Parameters") if by_path else None)
        if not isinstance(selector, dict):
            return Data("ITEM", {}, data.variables)
        found = self._states.carried(name, "ItemSelector", lambda: payloads.fields(selector, data, by_path), [])
        if not found:
            return Data("ITEM", {}, data.variables)
        whole = f"{{{', '.join(f'{json.dumps(key)}: {cel}' for key, cel in found)}}}"
        return Data(whole, {(key,): cel for key, cel in found}, data.variables, whole=True)

    def _limits(self, name: str, state: Document, args: Document) -> None:
        if isinstance(state.get("MaxConcurrency"), int) and state["MaxConcurrency"] > 0:
            args["max_concurrency"] = state["MaxConcurrency"]
        if isinstance(state.get("ToleratedFailureCount"), int):
            args["tolerated_failures"] = state["ToleratedFailureCount"]
        elif isinstance(state.get("ToleratedFailurePercentage"), int | float):
            args["tolerated_failures"] = f"{state['ToleratedFailurePercentage']:g}%"

    def _whole(self, name: str, exits: list[Way]) -> str:
        if not exits:
            self.flow.report.note(name, "", "a branch always ends in a Fail state")
            return "null"
        data = self.flow.merged(exits, name)
        return str(self._states.carried(name, "", lambda: data.at(()), "null"))


def _in_order(states: dict[str, Document], start: str, report: Report) -> list[str]:
    """States so that each comes after all that lead to it; a way back, which no graph of ours can hold, is left out."""
    done: list[str] = []
    open_now: list[str] = []

    stack: list[tuple[str, Iterator[str]]] = [(start, iter(_targets(states[start])))]
    open_now.append(start)
    while stack:
        name, targets = stack[-1]
        target = next(targets, None)
        if target is None:
            stack.pop()
            open_now.pop()
            done.append(name)
        elif target not in states:
            report.manual(name, "Next", f"leads to {target!r}, which is no state here")
        elif target in open_now:
            report.manual(
                name, "Next", f"leads back to {target!r}; graphs have no loops: use retries or continue-as-new"
            )
        elif target not in done:
            open_now.append(target)
            stack.append((target, iter(_targets(states[target]))))
    for name in states:
        if name not in done:
            report.note(name, "", "no state leads to it; left out")
    return done[::-1]


def _targets(state: Document) -> Iterator[str]:
    """Names of the states that may come next."""
    for item in (state, *listed(state, "Choices"), *listed(state, "Catch")):
        if (target := target_of(item)) is not None:
            yield target
    if (default := target_of(state, "Default")) is not None:
        yield default
