"""One state of a file as steps of ours, type by type. Follows no edges; the importer does."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

from ductor.cli.asl import jsonata, payloads, rules, tasks
from ductor.cli.asl.flow import Document, Flow, Piece, Way, listed, target_of
from ductor.cli.asl.values import Data, NotCarriedError, json_path, parse_path, step_output, template

_NO_PARTS: Final[Mapping[str, str]] = {}


class States:
    """Converts states that hold no other states."""

    def __init__(self, flow: Flow, by_path: bool) -> None:
        self.flow = flow
        self._default_by_path = by_path
        self.kinds: dict[str, Callable[[str, Document, Data], Piece]] = {
            "Task": self._task,
            "Choice": self._choice,
            "Wait": self._wait,
            "Pass": self._pass,
            "Succeed": self._succeed,
            "Fail": self._fail,
        }

    def by_path(self, state: Document) -> bool:
        language = state.get("QueryLanguage")
        return self._default_by_path if language is None else language == "JSONPath"

    def carried(self, name: str, field: str, make: Callable[[], Any], fallback: Any) -> Any:
        """What `make` gives, or the fallback and a note on what could not be carried over."""
        try:
            return make()
        except NotCarriedError as why:
            self.flow.report.manual(name, field, str(why))
            return fallback

    def input_of(self, name: str, state: Document, data: Data) -> Data:
        """The data after `InputPath`."""
        path = state.get("InputPath", "$")
        if path == "$":
            return data
        if path is None:
            return Data("{}", {}, data.variables)
        return Data(self.carried(name, "InputPath", lambda: json_path(path, data), data.base), {}, data.variables)

    def output_of(
        self, name: str, state: Document, data: Data, seen: Data, result: str, parts: Mapping[str, str] = _NO_PARTS
    ) -> Data:
        """The data after the state: `ResultPath`, `OutputPath`, or `Output` and `Assign`, around its result.

        `parts` says shorter what fields of the result are.
        """
        if not self.by_path(state):
            return self._jsonata_output(name, state, data, seen, result)
        if state.get("ResultSelector") is not None:
            selector = state["ResultSelector"]
            inner = Data(result, {(part,): cel for part, cel in parts.items()}, data.variables, whole=True)
            parts = _NO_PARTS
            result = self.carried(
                name, "ResultSelector", lambda: payloads.as_cel(selector, inner, by_path=True), result
            )
        path = state.get("ResultPath", "$")
        after = data
        if path is not None:
            after = self.carried(name, "ResultPath", lambda: data.laid(parse_path(path[1:]), result, parts), data)
        chosen = state.get("OutputPath", "$")
        if chosen is None:
            return Data("{}", {}, data.variables)
        if chosen != "$":
            return Data(self.carried(name, "OutputPath", lambda: json_path(chosen, after), after.base), {}, {})
        return after

    def next_way(self, ref: str, state: Document, data: Data) -> Way:
        return Way(ref, data, None if state.get("End") else target_of(state))

    def caught(self, ref: str, name: str, state: Document, data: Data) -> list[Way]:
        """The ways of `Catch`."""
        catchers = listed(state, "Catch")
        error = f'STEPS["{ref}"].error'
        after = [self._with_error(name, item, data, error) for item in catchers]
        if after:
            self.flow.report.note(name, "Catch", "the error has code and message here, not Error and Cause")
        return tasks.catch_ways(ref, catchers, after)

    def _with_error(self, name: str, catcher: Document, data: Data, error: str) -> Data:
        path = catcher.get("ResultPath", "$")
        return (
            data if path is None else self.carried(name, "Catch", lambda: data.laid(parse_path(path[1:]), error), data)
        )

    def project(self, ref: str, name: str, state: Document, fields: list[tuple[str, str]]) -> None:
        """A dataflow step that makes an object."""
        args = {"operation": "project", "project": dict(fields)}
        self.flow.add(ref, "dataflow", args, title=_title(name, ref), description=state.get("Comment"))

    def _task(self, name: str, state: Document, data: Data) -> Piece:
        ref, seen, report = self.flow.ref(name), self.input_of(name, state, data), self.flow.report
        by_path = self.by_path(state)
        given = state.get("Parameters") if by_path else state.get("Arguments")
        default: Any = self.carried(name, "", lambda: f"${{{{ {seen.at(())} }}}}", {})
        rendered = default
        if given is not None:
            rendered = self.carried(
                name, "Parameters", lambda: payloads.as_template(given, seen, by_path=by_path), given
            )
        call = tasks.action_of(name, str(state.get("Resource", "")), rendered, report)
        self.flow.add(
            ref,
            "action",
            call.args,
            title=_title(name, ref),
            description=state.get("Comment"),
            action=call.action,
            timeout_ms=tasks.milliseconds(state, "TimeoutSeconds", report, name),
            heartbeat_timeout_ms=tasks.milliseconds(state, "HeartbeatSeconds", report, name),
            **tasks.retry_fields(name, listed(state, "Retry"), report),
        )
        if "Credentials" in state:
            report.manual(name, "Credentials", "name a connection in connection_ref; secrets stay in connections")
        after = self.output_of(name, state, data, seen, call.result(ref), call.parts(ref))
        return Piece((ref,), (self.next_way(ref, state, after), *self.caught(ref, name, state, data)))

    def _choice(self, name: str, state: Document, data: Data) -> Piece:
        ref, seen = self.flow.ref(name), self.input_of(name, state, data)
        choices = listed(state, "Choices")
        conditions = [self._rule(name, place, item, state, seen) for place, item in enumerate(choices)]
        targets = [str(item.get("Next")) for item in choices]
        default = target_of(state, "Default")
        if len(choices) == 1:
            self.flow.add(ref, "condition", {"expr": conditions[0]}, title=_title(name, ref))
            ways = [Way(ref, data, targets[0], "true")]
            return Piece((ref,), (*ways, *([Way(ref, data, default, "false")] if default else [])))
        picked = "".join(f"{cel} ? {place} : " for place, cel in enumerate(conditions)) + "-1"
        self.project(ref, name, state, [("way", picked)])
        taken = f'STEPS["{ref}"].output.result.way'
        ways = [Way(ref, data, target, condition=f"{taken} == {place}") for place, target in enumerate(targets)]
        if default:
            ways.append(Way(ref, data, default, condition=f"{taken} == -1"))
        else:
            self.flow.report.note(
                name, "Default", "no rule matching ends the branch here; there it failed the execution"
            )
        return Piece((ref,), tuple(ways))

    def _rule(self, name: str, place: int, rule: Document, state: Document, data: Data) -> str:
        at = f"Choices[{place}]"
        if self.by_path(state):
            return str(self.carried(name, at, lambda: rules.condition(rule, data), "false"))
        return str(self.carried(name, at, lambda: jsonata.expression(str(rule.get("Condition", "")), data), "false"))

    def _wait(self, name: str, state: Document, data: Data) -> Piece:
        ref, seen = self.flow.ref(name), self.input_of(name, state, data)
        args = self.carried(name, "", lambda: self._wait_args(state, seen), {"duration": "0s"})
        self.flow.add(ref, "wait", args, title=_title(name, ref), description=state.get("Comment"))
        return Piece((ref,), (self.next_way(ref, state, data),))

    def _wait_args(self, state: Document, data: Data) -> Document:
        for name, fixed, computed in (("Seconds", "duration", "duration_expr"), ("Timestamp", "until", "until_expr")):
            value = state.get(name)
            by_path = state.get(f"{name}Path")
            factor = " * 1000" if name == "Seconds" else ""
            if by_path is not None:
                return {computed: f"{json_path(str(by_path), data)}{factor}"}
            if jsonata.is_expression(value):
                return {computed: f"({jsonata.expression(str(value), data)}){factor}"}
            if value is not None:
                return {fixed: f"{value}s" if name == "Seconds" else value}
        raise NotCarriedError("says neither how long nor until when")

    def _pass(self, name: str, state: Document, data: Data) -> Piece:
        ref, seen, by_path = self.flow.ref(name), self.input_of(name, state, data), self.by_path(state)
        given = state.get("Result", state.get("Parameters")) if by_path else state.get("Output")
        if "Result" in state and by_path:
            given = payloads.literal_payload(given)
        if given is None:
            self.project(ref, name, state, [("passed", "true")])
            after = self.output_of(name, state, data, seen, seen.base)
            unchanged = by_path and state.get("InputPath", "$") == "$" and state.get("ResultPath", "$") == "$"
            return Piece((ref,), (self.next_way(ref, state, data if unchanged else after),))
        whole = self.carried(name, "Result", lambda: payloads.as_cel(given, seen, by_path=by_path), "null")
        fields, result = [("value", str(whole))], step_output(ref, "result", "value")
        if isinstance(given, dict) and given and whole != "null":
            fields, result = payloads.fields(given, seen, by_path), step_output(ref, "result")
        self.project(ref, name, state, fields)
        if by_path:
            return Piece((ref,), (self.next_way(ref, state, self.output_of(name, state, data, seen, result)),))
        after = self._jsonata_output(name, {**state, "Output": None}, data, seen, result)
        return Piece((ref,), (self.next_way(ref, state, after),))

    def _succeed(self, name: str, state: Document, data: Data) -> Piece:
        ref, seen = self.flow.ref(name), self.input_of(name, state, data)
        by_path = self.by_path(state)
        given = state.get("OutputPath", "$") if by_path else state.get("Output")
        value = self.carried(name, "Output", lambda: _ended(given, seen, by_path), "null")
        self.project(ref, name, state, [("output", value)])
        return Piece((ref,), (Way(ref, Data(step_output(ref, "result", "output"))),))

    def _fail(self, name: str, state: Document, data: Data) -> Piece:
        ref = self.flow.ref(name)
        args: Document = {"retryable": False}
        for theirs, ours in (("Error", "code"), ("Cause", "message")):
            found = self.carried(name, theirs, partial(_told, state, theirs, data), theirs)
            if found is not None:
                args[ours] = found
        self.flow.add(ref, "action", {"code": "FAILED", **args}, title=_title(name, ref), action="core.fail")
        return Piece((ref,), ())

    def _jsonata_output(self, name: str, state: Document, data: Data, seen: Data, result: str) -> Data:
        values = state.get("Assign")
        if isinstance(values, dict):
            cel = partial(payloads.as_cel, data=seen, by_path=False, result=result)
            assigned = {
                key: self.carried(name, f"Assign.{key}", partial(cel, value), "null") for key, value in values.items()
            }
            data = data.assigned(assigned)
        given = state.get("Output")
        if given is None:
            return data.laid((), result)
        made = self.carried(name, "Output", lambda: payloads.as_cel(given, seen, by_path=False, result=result), result)
        return data.laid((), made)


def _ended(given: Any, data: Data, by_path: bool) -> str:
    """CEL for what a Succeed state passes on."""
    if by_path:
        return "{}" if given is None else json_path(str(given), data)
    return data.at(()) if given is None else payloads.as_cel(given, data, by_path=False)


def _told(state: Document, field: str, data: Data) -> Any:
    """What a Fail state says: a text, or a template of a computed one."""
    if f"{field}Path" in state:
        return template(json_path(str(state[f"{field}Path"]), data))
    return None if field not in state else jsonata.payload(state[field], data)


def _title(name: str, ref: str) -> str | None:
    return None if name == ref else name[:200]


KNOWN: Final = ("Task", "Choice", "Parallel", "Map", "Wait", "Pass", "Succeed", "Fail")
