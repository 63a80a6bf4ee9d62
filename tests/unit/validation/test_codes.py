"""Every validation code has a document that earns it, at the right field, and a near miss that does not."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from tests.unit.validation.samples import Doc, codes, doc, echo, edge, found


def _wait(**args: Any) -> Doc:
    return {"ref": "w", "type": "wait", "args": args}


def _flow(**args: Any) -> Doc:
    return {"ref": "f", "type": "dataflow", "args": args}


def _approval(**fields: Any) -> Doc:
    args = {"audience": {"roles": ["operator"]}}
    return {"ref": "r", "type": "approval", "action": "approval", "args": args, **fields}


def _scatter(**args: Any) -> Doc:
    return {"ref": "s", "type": "scatter", "args": {"items_expr": "[1]", **args}}


def _cron(cron: str, **fields: Any) -> Doc:
    return doc(schedule={"cron": cron, **fields})


def _chain(*steps: Doc, kind: str = "success") -> Doc:
    refs = [step["ref"] for step in steps]
    return doc(*steps, edges=[edge(one, two, type=kind) for one, two in pairwise(refs)])


def _charge(**fields: Any) -> Doc:
    return {"ref": "a", "type": "action", "action": "stripe.charge", **fields}


def _undo(**target: Any) -> Doc:
    return doc(echo(compensation={"on_failure": [target]}))


READS_A = {"x": "${{ STEPS.a.output.y }}"}

CASES: list[tuple[str, str, Doc, Doc]] = [
    (
        "DEFINITION_TOO_LARGE",
        "steps",
        doc(*(echo(f"s{i}") for i in range(501))),
        doc(*(echo(f"s{i}") for i in range(500))),
    ),
    ("GRAPH_EMPTY", "steps", {"family_slug": "sample", "steps": []}, doc()),
    ("STEP_REF_INVALID", "steps[0].ref", doc(echo("1st")), doc(echo("first-1_x"))),
    ("STEP_REF_INVALID", "steps[0].ref", doc(echo("a" * 65)), doc(echo("a" * 64))),
    ("STEP_REF_DUPLICATE", "A.ref", doc(echo("a"), echo("A")), doc(echo("a"), echo("a1"))),
    ("STEP_TYPE_UNKNOWN", "a.type", doc({"ref": "a", "type": "acton"}), doc(echo(type="Action"))),
    ("FIELD_UNKNOWN", "a.titel", doc(echo(titel="x")), doc(echo(title="x"))),
    ("FIELD_UNKNOWN", "id", doc(id="1"), doc(title="1")),
    ("FIELD_INVALID", "a.title", doc(echo(title="x" * 201)), doc(echo(title="x" * 200))),
    ("FIELD_INVALID", "family_slug", doc(family_slug="Sample"), doc(family_slug="sample-2_x")),
    ("FIELD_INVALID", "tags", doc(tags=["t"] * 21), doc(tags=["t"] * 20)),
    ("FIELD_INVALID", "tags[1]", doc(tags=["t", "x" * 51]), doc(tags=["t", "x" * 50])),
    ("FIELD_INVALID", "a.timeout_ms", doc(echo(timeout_ms=9223372036855)), doc(echo(timeout_ms=9223372036854))),
    ("FIELD_INVALID", "a.timeout_ms", doc(echo(timeout_ms=-1)), doc(echo(timeout_ms=0))),
    ("FIELD_INVALID", "a.timeout_ms", doc(echo(timeout_ms=True)), doc(echo(timeout_ms=1))),
    ("FIELD_INVALID", "run_timeout_ms", doc(run_timeout_ms=5.0), doc(run_timeout_ms=5)),
    ("FIELD_INVALID", "a.on_error", doc(echo(on_error="ignore")), doc(echo(on_error="CONTINUE"))),
    ("FIELD_INVALID", "variables.1x", doc(variables={"1x": 1}), doc(variables={"x1": 1})),
    (
        "FIELD_INVALID",
        "variables.x.overridable",
        doc(variables={"x": {"default": 1, "overridable": "yes"}}),
        doc(variables={"x": {"default": 1, "overridable": True}}),
    ),
    (
        "FIELD_INVALID",
        "f.args.redaction_policy",
        doc(_flow(operation="project", project={"a": "1"}, redaction_policy="none") | {"redaction_policy": "omit"}),
        doc(_flow(operation="project", project={"a": "1"}, redaction_policy="NONE") | {"redaction_policy": "none"}),
    ),
    ("FIELD_REQUIRED", "family_slug", {"steps": [echo()]}, doc()),
    ("FIELD_REQUIRED", "steps[0].ref", doc({"type": "wait", "args": {"duration": "1s"}}), doc(_wait(duration="1s"))),
    ("FIELD_REQUIRED", "edges[0].target_ref", doc(edges=[{"source_ref": "a"}]), doc()),
    (
        "FIELD_REQUIRED",
        "c.args.expr",
        doc({"ref": "c", "type": "condition"}),
        doc({"ref": "c", "type": "condition", "args": {"expr": "true"}}),
    ),
    ("EDGE_ENDPOINT_UNKNOWN", "edges[0].target_ref", doc(edges=[edge("a", "B")]), _chain(echo(), echo("B"))),
    (
        "EDGE_DUPLICATE",
        "edges[1]",
        doc(echo(), echo("b"), edges=[edge("a", "b"), edge("a", "b", type="EDGE_TYPE_SUCCESS")]),
        doc(echo(), echo("b"), edges=[edge("a", "b"), edge("a", "b", type="error")]),
    ),
    (
        "EDGE_TYPE_INVALID",
        "edges[0].type",
        _chain(echo(), echo("b"), kind="true"),
        _chain(echo(), echo("b"), kind="done"),
    ),
    ("EDGE_TYPE_INVALID", "edges[0].type", _chain(echo(), echo("b"), kind="sucess"), _chain(echo(), echo("b"))),
    ("GRAPH_CYCLE", "a", doc(echo(), echo("b"), edges=[edge("a", "b"), edge("b", "a")]), _chain(echo(), echo("b"))),
    ("GRAPH_CYCLE", "a", doc(edges=[edge("a", "a")]), doc()),
    (
        "STEP_UNREACHABLE",
        "b",
        _chain(echo(on_error="continue"), echo("b"), kind="error"),
        _chain(echo(), echo("b"), kind="error"),
    ),
    ("CEL_SYNTAX", "a.condition", doc(echo(condition="1 +")), doc(echo(condition="1 + 1 == 2"))),
    (
        "CEL_UNKNOWN_ROOT",
        "a.args.x",
        doc(echo(args={"x": "${{ trigger.x }}"})),
        doc(echo(args={"x": "${{ TRIGGER.x }}"})),
    ),
    (
        "CEL_UNKNOWN_ROOT",
        "a.condition",
        doc(echo(condition="INPUT == 1")),
        doc(_flow(operation="project", input_expr="1", project={"x": "INPUT"})),
    ),
    (
        "CEL_UNKNOWN_STEP",
        "b.args.x",
        _chain(echo(), echo("b", args={"x": "${{ STEPS.c.output }}"})),
        _chain(echo(), echo("b", args=READS_A)),
    ),
    (
        "CEL_STEP_NOT_UPSTREAM",
        "b.args.x",
        doc(echo(), echo("b", args=READS_A)),
        _chain(echo(), echo("b", args=READS_A)),
    ),
    (
        "CEL_STEP_NOT_UPSTREAM",
        "a.condition",
        doc(echo(condition="STEPS.a.status == 'completed'")),
        doc(echo(effects={"context": {"x": "STEPS.a.output"}})),
    ),
    (
        "CEL_STEP_NOT_UPSTREAM",
        "edges[0].condition",
        doc(echo(), echo("b"), edges=[edge("a", "b", condition="STEPS.b.output == 1")]),
        doc(echo(), echo("b"), edges=[edge("a", "b", condition="STEPS.a.output == 1")]),
    ),
    (
        "CEL_TYPE",
        "c.args.expr",
        doc({"ref": "c", "type": "condition", "args": {"expr": "1 + 1"}}),
        doc({"ref": "c", "type": "condition", "args": {"expr": "TRIGGER.x"}}),
    ),
    (
        "CEL_TOO_COMPLEX",
        "a.condition",
        doc(echo(condition="true || " * 2_000 + "true")),
        doc(echo(condition="true || true")),
    ),
    ("TEMPLATE_SYNTAX", "a.args.x", doc(echo(args={"x": "${{ 1"})), doc(echo(args={"x": "$${{ 1"}))),
    ("TEMPLATE_SYNTAX", "output.x", doc(output={"x": "${{ }}"}), doc(output={"x": "${{ 1 }}"})),
    ("ACTION_REQUIRED", "a.action", doc({"ref": "a", "type": "action"}), doc(echo())),
    ("ACTION_UNKNOWN", "a.action", doc(echo(action="core.ecko")), doc(echo(action="core.echo"))),
    (
        "ACTION_UNKNOWN",
        "hooks.on_failed.action",
        doc(hooks={"on_failed": {"action": "x"}}),
        doc(hooks={"on_failed": {"action": "core.echo"}}),
    ),
    (
        "ACTION_ARGS_INVALID",
        "a.args.amount",
        doc(_charge(connection_ref="stripe-live", args={"amount": "1"})),
        doc(_charge(connection_ref="stripe-live", args={"amount": "${{ TRIGGER.amount }}"})),
    ),
    ("CONNECTION_REQUIRED", "a.connection_ref", doc(_charge()), doc(_charge(connection_ref="${{ VARS.c }}"))),
    ("CONNECTION_REQUIRED", "a.connection_ref", doc(echo(connection_ref_mode="direct")), doc(echo())),
    (
        "CONNECTION_UNKNOWN",
        "a.connection_ref",
        doc(_charge(connection_ref="stripe")),
        doc(_charge(connection_ref="stripe", connection_ref_mode="environment")),
    ),
    ("APPROVAL_ACTION_INVALID", "r.action", doc(_approval(action="approve")), doc(_approval())),
    ("APPROVAL_SPEC_INVALID", "r.args.audience", doc(_approval(args={})), doc(_approval())),
    ("WAIT_SPEC_INVALID", "w.args", doc(_wait()), doc(_wait(duration="2s"))),
    (
        "WAIT_SPEC_INVALID",
        "w.args",
        doc(_wait(duration="2s", duration_expr="1")),
        doc(_wait(duration_expr="VARS.delay")),
    ),
    ("WAIT_SPEC_INVALID", "w.args.duration", doc(_wait(duration="367d")), doc(_wait(duration="366d"))),
    (
        "WAIT_SPEC_INVALID",
        "w.args.until",
        doc(_wait(until="2030-02-30T00:00:00Z")),
        doc(_wait(until="2030-02-28T00:00:00+02:00")),
    ),
    (
        "EVENT_SPEC_INVALID",
        "e.args.correlation_key",
        doc({"ref": "e", "type": "wait_event", "args": {"event_name": "x"}}),
        doc({"ref": "e", "type": "wait_event", "args": {"event_name": "x", "correlation_key": "k"}}),
    ),
    (
        "EVENT_SET_SPEC_INVALID",
        "e.args.requirements",
        doc({"ref": "e", "type": "event_set", "args": {}}),
        doc(
            {
                "ref": "e",
                "type": "event_set",
                "args": {"correlation_key": "k", "requirements": [{"name": "n", "event_name": "x"}]},
            }
        ),
    ),
    (
        "DIGEST_SPEC_INVALID",
        "d.args",
        doc({"ref": "d", "type": "digest", "args": {"digest_key": "k", "max_wait": "1m"}}),
        doc({"ref": "d", "type": "digest", "args": {"digest_key": "k", "max_wait": "1m", "max_count": 5}}),
    ),
    (
        "SCATTER_SPEC_INVALID",
        "s.args.tolerated_failures",
        _chain(_scatter(tolerated_failures="101%"), echo(), {"ref": "g", "type": "gather"}),
        _chain(_scatter(tolerated_failures="10%"), echo(), {"ref": "g", "type": "gather"}),
    ),
    (
        "GATHER_SPEC_INVALID",
        "g.args.quorum",
        doc({"ref": "g", "type": "gather", "args": {"policy": "quorum"}}),
        doc({"ref": "g", "type": "gather", "args": {"policy": "quorum", "quorum": 2}}),
    ),
    (
        "RACE_SPEC_INVALID",
        "r.args",
        _chain(echo(), {"ref": "r", "type": "race"}),
        doc(echo(), echo("b"), {"ref": "r", "type": "race"}, edges=[edge("a", "r"), edge("b", "r")]),
    ),
    (
        "SUBWORKFLOW_UNKNOWN",
        "s.args.family_slug",
        doc({"ref": "s", "type": "subworkflow", "args": {"family_slug": "nobody"}}),
        doc({"ref": "s", "type": "subworkflow", "args": {"family_slug": "child"}}),
    ),
    (
        "SUBWORKFLOW_RECURSION",
        "s.args.family_slug",
        doc({"ref": "s", "type": "subworkflow", "args": {"family_slug": "sample"}}),
        doc({"ref": "s", "type": "subworkflow", "args": {"family_slug": "child"}}),
    ),
    (
        "AI_SPEC_INVALID",
        "m.args",
        doc({"ref": "m", "type": "ai_action", "args": {"model": "x", "max_tokens": 5}}),
        doc({"ref": "m", "type": "ai_action", "args": {"model": "x", "max_tokens": 5, "prompt": "hi"}}),
    ),
    (
        "BRIDGE_SPEC_INVALID",
        "b.args.task_type",
        doc({"ref": "b", "type": "bridge", "args": {}}),
        doc({"ref": "b", "type": "bridge", "args": {"task_type": "render"}}),
    ),
    (
        "DATAFLOW_SPEC_INVALID",
        "f.args.operation",
        doc(_flow(operation="reduce")),
        doc(_flow(operation="PROJECT", project={"a": "1"})),
    ),
    ("COMPENSATION_INVALID", "a.compensation.on_failure[0].action", _undo(args={}), _undo(action="core.echo")),
    (
        "COMPENSATION_INVALID",
        "a.compensation.failure_policy",
        doc(echo(compensation={"failure_policy": "shrug"})),
        doc(echo(compensation={"failure_policy": "manual_repair"})),
    ),
    (
        "RETRY_INVALID",
        "a.compensation.on_failure[0].retry_max_attempts",
        _undo(action="core.echo", retry_max_attempts=0),
        _undo(action="core.echo", retry_max_attempts=1),
    ),
    (
        "RESERVED_ATTRIBUTE",
        "a.effects.visibility.ductor.correlation.x",
        doc(echo(effects={"visibility": {"ductor.correlation.x": "1"}})),
        doc(echo(effects={"visibility": {"ductorial": "1"}})),
    ),
    (
        "TRIGGER_PATTERN_INVALID",
        "triggers[0].patterns[1]",
        doc(triggers=[{"patterns": ["a.b", "a.*.b"]}]),
        doc(triggers=[{"patterns": ["a.b", "a.*"]}]),
    ),
    (
        "TRIGGER_PATTERN_INVALID",
        "triggers[0].patterns",
        doc(triggers=[{"patterns": []}]),
        doc(triggers=[{"patterns": ["x"]}]),
    ),
    (
        "CEL_UNKNOWN_ROOT",
        "triggers[0].condition",
        doc(triggers=[{"patterns": ["x"], "condition": "TRIGGER.x == 1"}]),
        doc(triggers=[{"patterns": ["x"], "condition": "EVENT.payload.x == 1"}]),
    ),
    (
        "CHECKPOINT_INVALID",
        "checkpoints[0].step_ref",
        doc(checkpoints=[{"name": "x", "step_ref": "b"}]),
        doc(checkpoints=[{"name": "x", "step_ref": "a"}]),
    ),
    (
        "CHECKPOINT_INVALID",
        "checkpoints[1].response",
        doc(checkpoints=[{"name": n, "step_ref": "a", "response": True} for n in "xy"]),
        doc(checkpoints=[{"name": n, "step_ref": "a", "response": n == "x"} for n in "xy"]),
    ),
    (
        "CHECKPOINT_INVALID",
        "checkpoints[1].name",
        doc(checkpoints=[{"name": "x", "step_ref": "a"}] * 2),
        doc(checkpoints=[{"name": "x", "step_ref": "a"}]),
    ),
    ("SCHEDULE_CRON_INVALID", "schedule.cron", _cron("0 0 31 2 *"), _cron("0 0 31 4,5 *")),
    ("SCHEDULE_CRON_INVALID", "schedule.cron", _cron("0 0 30 2 *"), _cron("0 0 29 2 *")),
    ("SCHEDULE_CRON_INVALID", "schedule.cron", _cron("0 0 31 4,6,9,11 *"), _cron("0 0 31 4,6,9,11 MON")),
    ("SCHEDULE_CRON_INVALID", "schedule.cron", _cron("* * * * * *"), _cron("*/5 9-17 * JAN,mar 7")),
    ("SCHEDULE_CRON_INVALID", "schedule.cron", _cron("60 * * * *"), _cron("59 * * * *")),
    ("SCHEDULE_CRON_INVALID", "schedule.rate", doc(schedule={"rate": "5s"}), doc(schedule={"rate": "5m"})),
    (
        "FIELD_INVALID",
        "schedule.input",
        _cron("0 9 * * *", input={"n": "x"}) | {"input_schema": {"properties": {"n": {"type": "integer"}}}},
        _cron("0 9 * * *", input={"n": 1}) | {"input_schema": {"properties": {"n": {"type": "integer"}}}},
    ),
    (
        "FIELD_INVALID",
        "schedule.input",
        _cron("0 9 * * *") | {"input_schema": {"required": ["n"]}},
        _cron("0 9 * * *", input={"n": 1}) | {"input_schema": {"required": ["n"]}},
    ),
    (
        "SCHEDULE_TIMEZONE_INVALID",
        "schedule.timezone",
        _cron("0 9 * * *", timezone="Europe/Berlin2"),
        _cron("0 9 * * *", timezone="Europe/Berlin"),
    ),
    (
        "SCHEDULE_TIMEZONE_INVALID",
        "schedule.timezone",
        _cron("0 9 * * *", timezone="../etc/passwd"),
        _cron("0 9 * * *", timezone="UTC"),
    ),
    (
        "SCHEDULE_OVERLAP_POLICY_INVALID",
        "schedule.overlap_policy",
        _cron("0 9 * * *", overlap_policy="queue"),
        _cron("0 9 * * *", overlap_policy="allow_all"),
    ),
    (
        "FIELD_INVALID",
        "schedule.end_at",
        _cron("0 9 * * *", start_at="2030-01-01T00:00:00Z", end_at="2030-01-01T00:00:00Z"),
        _cron("0 9 * * *", start_at="2030-01-01T00:00:00Z", end_at="2030-01-02T00:00:00Z"),
    ),
    (
        "DST_GAP",
        "schedule.cron",
        _cron("30 2 * * *", timezone="Europe/Berlin"),
        _cron("30 3 * * *", timezone="Europe/Berlin"),
    ),
    (
        "INPUT_SCHEMA_INVALID",
        "input_schema.type",
        doc(input_schema={"type": "objekt"}),
        doc(input_schema={"type": "object"}),
    ),
    (
        "INPUT_SCHEMA_INVALID",
        "input_schema.$ref",
        doc(input_schema={"$ref": "https://example.com/s"}),
        doc(input_schema={"$ref": "#/$defs/x", "$defs": {"x": {}}}),
    ),
    (
        "INPUT_SCHEMA_INVALID",
        "input_schema.pattern",
        doc(input_schema={"pattern": "^(a+)+(?=b)$"}),
        doc(input_schema={"pattern": "^(a+)+$"}),
    ),
    (
        "INPUT_SCHEMA_INVALID",
        "input_schema",
        doc(input_schema={"$ref": "#"}),
        doc(input_schema={"properties": {"child": {"$ref": "#"}}}),
    ),
    ("ENVIRONMENT_UNKNOWN", "environment", doc(environment="prod"), doc(environment="default")),
    ("ENVIRONMENT_NOT_WRITABLE", "environment", doc(environment="locked"), doc()),
]


@pytest.mark.parametrize(
    ("code", "field", "bad", "near"), CASES, ids=[f"{index}-{case[0]}" for index, case in enumerate(CASES)]
)
def test_a_fault_is_named_where_it_is_and_its_near_miss_is_not(code: str, field: str, bad: Doc, near: Doc) -> None:
    assert (field, code) in {(item.field, item.code) for item in found(bad)}
    assert code not in codes(near)


def test_every_message_says_something_to_do() -> None:
    for _, _, bad, _ in CASES:
        for item in found(bad):
            assert len(item.message) > 10
            assert item.message == item.message.strip()
