"""Task states: which action does what a resource did, and what becomes of retries and catchers."""

from __future__ import annotations

import json
import re
from typing import Any, Final

from ductor.cli.asl.flow import Document, Way
from ductor.cli.asl.report import Report
from ductor.cli.asl.services import Called, called
from ductor.cli.asl.values import Data

_FUNCTION: Final = re.compile(r"arn:[\w-]+:lambda:[^:]*:[^:]*:function:(?P<name>[\w-]+)(?::(?P<alias>[\w$-]+))?")
_SERVICE: Final = re.compile(
    r"arn:[\w-]+:states:::(?P<service>[\w:-]+?)(?:\.(?P<pattern>sync(?::2)?|waitForTaskToken))?"
)
_ALL: Final = frozenset({"States.ALL", "States.TaskFailed"})
_CODES: Final = {"States.Timeout": "ATTEMPT_TIMEOUT", "States.HeartbeatTimeout": "HEARTBEAT_TIMEOUT"}
_DEFAULT_ATTEMPTS: Final = 3
_MAX_ATTEMPTS: Final = 100


def action_of(state: str, resource: str, given: Any, report: Report) -> Called:
    """The action for a resource and the rendered payload, and where in its output the result is."""
    function = _FUNCTION.fullmatch(resource)
    if function is not None:
        args = {"function": function["name"], "payload": given}
        alias = {"qualifier": function["alias"]} if function["alias"] else {}
        return Called("lambda.invoke", {**args, **alias}, path=("payload",))
    service = _SERVICE.fullmatch(resource)
    name = service["service"] if service else ""
    if service is not None and service["pattern"]:
        message = (
            f"'.{service['pattern']}' waits for the other side; use a wait_event, bridge or approval step after it"
        )
        report.manual(state, "Resource", message)
    known = called(name, state, given, report)
    if known is not None:
        return known
    body = given if isinstance(given, dict) else {}
    if name == "http:invoke":
        return Called("http.request", _http(state, body, report))
    action = name.replace("aws-sdk:", "").replace(":", ".") or re.sub(r"\W+", ".", resource).strip(".")[-60:]
    report.manual(state, "Resource", f"register an action '{action}' that does what {resource} did")
    return Called(action, body or {"input": given})


def retry_fields(state: str, retriers: list[Document], report: Report) -> Document:
    """Our retry fields. A step has one policy: the last retrier's, which in ASL is the general one."""
    never = [code for item in retriers if item.get("MaxAttempts") == 0 for code in _named(item)]
    lasting = [item for item in retriers if item.get("MaxAttempts") != 0]
    fields: Document = {"non_retryable_codes": never} if never else {}
    if not lasting:
        return fields
    chosen = lasting[-1]
    if len(lasting) > 1:
        report.note(state, "Retry", f"{len(lasting)} retriers became one: the last, for every error")
    elif not _ALL & set(_errors(chosen)):
        report.note(state, "Retry", f"retries every error, not only {', '.join(_errors(chosen))}")
    attempts = min(int(chosen.get("MaxAttempts", _DEFAULT_ATTEMPTS)) + 1, _MAX_ATTEMPTS)
    fields |= {
        "retry_max_attempts": attempts,
        "retry_backoff_ms": int(float(chosen.get("IntervalSeconds", 1)) * 1000),
        "retry_backoff_multiplier": min(float(chosen.get("BackoffRate", 2.0)), 10.0),
        "retry_jitter": 1.0 if chosen.get("JitterStrategy") == "FULL" else 0.0,
    }
    if "MaxDelaySeconds" in chosen:
        fields["retry_max_backoff_ms"] = int(float(chosen["MaxDelaySeconds"]) * 1000)
    return fields


def catch_ways(ref: str, catchers: list[Document], data_for: list[Data]) -> list[Way]:
    """A way per catcher, the first that matches taken: each excludes the errors of those before it."""
    ways: list[Way] = []
    earlier: list[str] = []
    for catcher, data in zip(catchers, data_for, strict=True):
        errors = _errors(catcher)
        target = str(catcher.get("Next"))
        code = f'STEPS["{ref}"].error.code'
        without = [f"!({code} in {json.dumps(earlier)})"] if earlier else []
        if _ALL & set(errors):
            ways.append(Way(ref, data, target, "error", " && ".join(without)))
        elif errors == ["States.Timeout"]:
            ways.append(Way(ref, data, target, "timeout"))
        else:
            named = _named(catcher)
            ways.append(Way(ref, data, target, "error", " && ".join([f"{code} in {json.dumps(named)}", *without])))
            earlier += named
    return ways


def milliseconds(state: Document, name: str, report: Report, at: str) -> int | None:
    """A duration field in seconds as milliseconds."""
    value = state.get(name)
    if value is None:
        if f"{name}Path" in state:
            report.manual(at, f"{name}Path", "a computed timeout is not carried over; set the step's timeout_ms")
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        report.manual(at, name, "a computed timeout is not carried over; set the step's timeout_ms")
        return None
    return int(value * 1000)


def _http(state: str, body: Document, report: Report) -> Document:
    if "Authentication" in body:
        report.manual(state, "Authentication", "name a connection in connection_ref; secrets stay in connections")
    names = {"ApiEndpoint": "url", "Method": "method", "Headers": "headers", "QueryParameters": "query"}
    args = {ours: body[theirs] for theirs, ours in names.items() if theirs in body}
    return {**args, "json": body["RequestBody"]} if "RequestBody" in body else args


def _errors(item: Document) -> list[str]:
    return [str(name) for name in item.get("ErrorEquals") or ()]


def _named(item: Document) -> list[str]:
    return [_CODES.get(name, name) for name in _errors(item) if name not in _ALL]
