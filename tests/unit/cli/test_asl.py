"""Imports of Amazon States Language: the outcome is a valid definition, and what was not carried over is named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.validation.samples import Actions
from typer.testing import CliRunner

from ductor.actions.registry import default_registry
from ductor.cli.asl.importer import convert
from ductor.cli.asl.report import Report
from ductor.cli.asl.values import Data, NotCarriedError, json_path
from ductor.cli.failure import Exit
from ductor.cli.main import app
from ductor.model.errors import Severity
from ductor.validation.context import Context
from ductor.validation.validator import validate

Document = dict[str, Any]


def converted(start: str, **states: Document) -> tuple[dict[str, Document], list[Document], Report]:
    document, report = convert({"StartAt": start, "States": states}, "imported")
    found = validate({**document, "environment": "default"}, Context(catalog=Actions(), now=0))
    errors = [item for item in found if item.severity is Severity.ERROR and item.code != "ACTION_UNKNOWN"]
    assert not errors, errors
    return {step["ref"]: step for step in document["steps"]}, document["edges"], report


def invoke(**fields: Any) -> Document:
    return {"Type": "Task", "Resource": "arn:aws:lambda:eu-west-1:1:function:work", "End": True, **fields}


def test_a_task_gets_its_retries_and_limits() -> None:
    retry = {"ErrorEquals": ["States.ALL"], "IntervalSeconds": 2, "MaxAttempts": 3, "MaxDelaySeconds": 60}
    steps, _, _ = converted("A", A=invoke(TimeoutSeconds=5, Retry=[{**retry, "BackoffRate": 1.5}]))
    step = steps["A"]
    assert (step["action"], step["args"]["function"], step["timeout_ms"]) == ("lambda.invoke", "work", 5_000)
    assert (step["retry_max_attempts"], step["retry_backoff_ms"], step["retry_max_backoff_ms"]) == (4, 2_000, 60_000)


@pytest.mark.parametrize(
    ("field", "value", "state"),
    [
        ("Retry", "always", invoke()),
        ("Catch", [1], invoke()),
        ("Choices", ["$.x"], {"Type": "Choice"}),
        ("Branches", {}, {"Type": "Parallel", "End": True}),
    ],
)
def test_a_list_that_is_none_is_named_and_not_dropped_in_silence(field: str, value: Any, state: Document) -> None:
    _, _, report = converted("A", A={**state, field: value})

    assert f"manual: A.{field}: must be a list of objects; what is none was left out" in {
        note.line() for note in report.notes
    }


def test_an_error_that_is_never_retried_is_named() -> None:
    retry = [{"ErrorEquals": ["Bad"], "MaxAttempts": 0}, {"ErrorEquals": ["States.ALL"]}]
    steps, _, _ = converted("A", A=invoke(Retry=retry))
    assert steps["A"]["non_retryable_codes"] == ["Bad"]
    assert steps["A"]["retry_max_attempts"] == 4


def test_catchers_become_error_edges_of_which_the_first_match_is_taken() -> None:
    catch = [{"ErrorEquals": ["Stock"], "Next": "B"}, {"ErrorEquals": ["States.ALL"], "Next": "C"}]
    fail = {"Type": "Fail", "Error": "E"}
    _, edges, _ = converted("A", A=invoke(Catch=catch), B=fail, C=fail)
    conditions = {edge["target_ref"]: (edge["type"], edge.get("condition")) for edge in edges}
    assert conditions["B"] == ("error", 'STEPS["A"].error.code in ["Stock"]')
    assert conditions["C"] == ("error", '!(STEPS["A"].error.code in ["Stock"])')


def test_one_rule_is_a_condition_step() -> None:
    rule = {"Variable": "$.n", "NumericGreaterThan": 3, "Next": "B"}
    done = {"Type": "Succeed"}
    steps, edges, _ = converted("A", A={"Type": "Choice", "Choices": [rule], "Default": "C"}, B=done, C=done)
    assert steps["A"]["args"] == {"expr": "TRIGGER.payload.n > 3"}
    assert {edge["type"] for edge in edges} == {"true", "false"}


def test_of_several_rules_the_first_that_matches_decides() -> None:
    rules = [{"Variable": "$.n", "NumericEquals": n, "Next": ref} for n, ref in ((1, "B"), (2, "C"))]
    done = {"Type": "Succeed"}
    steps, edges, report = converted("A", A={"Type": "Choice", "Choices": rules}, B=done, C=done)
    assert steps["A"]["args"]["project"]["way"] == "TRIGGER.payload.n == 1 ? 0 : TRIGGER.payload.n == 2 ? 1 : -1"
    assert [edge["condition"][-4:] for edge in edges] == ["== 1", "== 0"] or len(edges) == 2
    assert "Default" in report.notes[0].field


def test_results_are_read_where_result_path_put_them() -> None:
    steps, _, _ = converted(
        "A",
        A={**invoke(ResultPath="$.stock"), "End": False, "Next": "B"},
        B=invoke(Parameters={"left.$": "$.stock.left", "sku.$": "$.sku"}),
    )
    assert steps["B"]["args"]["payload"] == {
        "left": "${{ STEPS.A.output.payload.left }}",
        "sku": "${{ TRIGGER.payload.sku }}",
    }


def service(name: str, **parameters: Any) -> Document:
    return {"Type": "Task", "Resource": f"arn:aws:states:::{name}", "Parameters": parameters, "End": True}


ORDER = {"id": {"S.$": "$.order"}}
TYPED = {"id": {"S": "${{ TRIGGER.payload.order }}"}}


@pytest.mark.parametrize(
    ("state", "action", "args"),
    [
        (
            service("lambda:invoke", **{"FunctionName": "work", "Payload.$": "$", "Qualifier": "live"}),
            "lambda.invoke",
            {"function": "work", "payload": "${{ TRIGGER.payload }}", "qualifier": "live"},
        ),
        (
            service(
                "aws-sdk:sqs:sendMessage",
                QueueUrl="https://sqs.eu-west-1.amazonaws.com/123456789012/q.fifo",
                MessageGroupId="g",
                MessageBody={"order.$": "$.order"},
                MessageAttributes={"n": {"DataType": "Number", "StringValue": "5"}},
            ),
            "sqs.send",
            {
                "queue_url": "https://sqs.eu-west-1.amazonaws.com/123456789012/q.fifo",
                "group_id": "g",
                "body": {"order": "${{ TRIGGER.payload.order }}"},
                "attributes": {"n": 5},
            },
        ),
        (
            service("sns:publish", TopicArn="arn:aws:sns:eu-west-1:123456789012:t", Message="hi", Subject="s"),
            "sns.publish",
            {"topic_arn": "arn:aws:sns:eu-west-1:123456789012:t", "message": "hi", "subject": "s"},
        ),
        (
            service("dynamodb:getItem", TableName="orders", Key=ORDER),
            "dynamodb.get_item",
            {"typed": True, "consistent": False, "table": "orders", "key": TYPED},
        ),
        (
            service("dynamodb:putItem", TableName="orders", Item=ORDER, ConditionExpression="attribute_not_exists(id)"),
            "dynamodb.put_item",
            {"typed": True, "table": "orders", "item": TYPED, "condition": "attribute_not_exists(id)"},
        ),
        (
            service(
                "dynamodb:updateItem",
                TableName="orders",
                Key=ORDER,
                UpdateExpression="SET #a = :a",
                ExpressionAttributeNames={"#a": "a"},
                ExpressionAttributeValues={":a": {"N": "1"}},
                ReturnValues="ALL_NEW",
            ),
            "dynamodb.update_item",
            {
                "typed": True,
                "return_item": True,
                "table": "orders",
                "key": TYPED,
                "update": "SET #a = :a",
                "names": {"#a": "a"},
                "values": {":a": {"N": "1"}},
            },
        ),
        (
            service("events:putEvents", Entries=[{"Source": "acme", "DetailType": "paid", "Detail": '{"n": 1}'}]),
            "eventbridge.put_events",
            {"entries": [{"source": "acme", "detail_type": "paid", "detail": {"n": 1}}]},
        ),
        (
            service(
                "states:startExecution",
                **{"StateMachineArn": "arn:aws:states:eu-west-1:123456789012:stateMachine:m", "Input.$": "$"},
            ),
            "stepfunctions.start_execution",
            {
                "state_machine_arn": "arn:aws:states:eu-west-1:123456789012:stateMachine:m",
                "input": "${{ TRIGGER.payload }}",
            },
        ),
        (
            service("aws-sdk:s3:putObject", Bucket="docs", Key="a", Body={"n": 1}),
            "s3.put_object",
            {"bucket": "docs", "key": "a", "json": {"n": 1}},
        ),
    ],
)
def test_services_are_called_by_our_actions(state: Document, action: str, args: Document) -> None:
    steps, _, report = converted("A", A=state)
    assert (steps["A"]["action"], steps["A"]["args"]) == (action, args)
    assert report.complete, [note.line() for note in report.notes]
    registry = default_registry()
    assert action in registry
    assert registry.validate_args(action, args) == []


@pytest.mark.parametrize(
    ("resource", "path", "cel"),
    [
        ("lambda:invoke", "$.Payload.total", "STEPS.A.output.payload.total"),
        ("sqs:sendMessage", "$.MessageId", "STEPS.A.output.message_id"),
        ("dynamodb:getItem", "$.Item.price.N", "STEPS.A.output.item.price.N"),
        ("states:startExecution", "$.ExecutionArn", "STEPS.A.output.execution_arn"),
    ],
)
def test_results_are_read_by_the_names_of_the_service(resource: str, path: str, cel: str) -> None:
    for result_path, prefix in ((None, "$"), ("$.at", "$.at")):
        first = {**service(resource), "End": False, "Next": "B"} | ({"ResultPath": result_path} if result_path else {})
        steps, _, _ = converted("A", A=first, B=invoke(Parameters={"x.$": path.replace("$", prefix)}))
        assert steps["B"]["args"]["payload"] == {"x": f"${{{{ {cel} }}}}"}


def test_a_whole_result_has_the_names_of_the_service() -> None:
    first = {**service("lambda:invoke", FunctionName="work"), "End": False, "Next": "B"}
    steps, _, _ = converted("A", A=first, B=invoke())
    whole = '{"Payload": STEPS.A.output.payload, "StatusCode": STEPS.A.output.status_code}'
    assert steps["B"]["args"]["payload"] == f"${{{{ {whole} }}}}"


@pytest.mark.parametrize(
    ("state", "place"),
    [
        (service("sqs:sendMessage", QueueUrl="q", MessageSystemAttributes={}), "Parameters.MessageSystemAttributes"),
        (
            service("dynamodb:getItem", TableName="t", Key={}, ProjectionExpression="a"),
            "Parameters.ProjectionExpression",
        ),
        (service("dynamodb:updateItem", TableName="t", ReturnValues="ALL_OLD"), "Parameters.ReturnValues"),
        (service("dynamodb:deleteItem", TableName="t", Key={}), "Resource"),
        (service("events:putEvents", **{"Entries.$": "$.entries"}), "Parameters.Entries"),
        (service("states:startExecution.sync", StateMachineArn="m"), "Resource"),
        (
            service("sns:publish", MessageAttributes={"b": {"DataType": "Binary", "BinaryValue": "x"}}),
            "Parameters.MessageAttributes.b",
        ),
    ],
)
def test_what_an_action_does_not_take_is_named(state: Document, place: str) -> None:
    document, report = convert({"StartAt": "A", "States": {"A": state}}, "imported")
    assert place in [note.field for note in report.notes if note.weight == "manual"]
    assert document["steps"]


def test_branches_meet_in_a_step_that_waits_for_all() -> None:
    branch = {"StartAt": "X", "States": {"X": {"Type": "Pass", "Result": {"a": 1}, "End": True}}}
    steps, edges, _ = converted("P", P={"Type": "Parallel", "Branches": [branch, branch], "End": True})
    assert steps["P"]["join"] == "all"
    assert steps["P"]["args"]["project"]["branches"] == "[STEPS.X.output.result, STEPS.X_2.output.result]"
    assert {(edge["source_ref"], edge["target_ref"]) for edge in edges} == {("X", "P"), ("X_2", "P")}


def test_a_map_is_a_scatter_and_a_gather() -> None:
    body = {"StartAt": "One", "States": {"One": invoke(Parameters={"line.$": "$.line"})}}
    state = {
        "Type": "Map",
        "ItemsPath": "$.lines",
        "MaxConcurrency": 4,
        "ToleratedFailurePercentage": 10,
        "ItemSelector": {"line.$": "$$.Map.Item.Value"},
        "ItemProcessor": body,
        "End": True,
    }
    steps, _, report = converted("Each", Each=state)
    limits = {"items_expr": "TRIGGER.payload.lines", "max_concurrency": 4, "tolerated_failures": "10%"}
    assert steps["Each"]["args"] == limits
    assert steps["One"]["args"]["payload"] == {"line": "${{ ITEM }}"}
    assert steps["Each_results"]["type"] == "gather"
    assert report.complete


@pytest.mark.parametrize(
    ("state", "args"),
    [
        ({"Seconds": 5}, {"duration": "5s"}),
        ({"SecondsPath": "$.wait"}, {"duration_expr": "TRIGGER.payload.wait * 1000"}),
        ({"Timestamp": "2030-01-01T00:00:00Z"}, {"until": "2030-01-01T00:00:00Z"}),
        ({"TimestampPath": "$.at"}, {"until_expr": "TRIGGER.payload.at"}),
    ],
)
def test_waits(state: Document, args: Document) -> None:
    steps, _, _ = converted("W", W={"Type": "Wait", "End": True, **state})
    assert steps["W"]["args"] == args


def test_simple_jsonata_is_carried_over_and_the_rest_is_named() -> None:
    states = {
        "A": {
            **invoke(Arguments={"n": "{% $states.input.n + 1 %}"}, Output="{% $states.result.x %}"),
            "QueryLanguage": "JSONata",
            "End": False,
            "Next": "B",
        },
        "B": {**invoke(Arguments={"s": "{% $sum($states.input.list) %}"}), "QueryLanguage": "JSONata"},
    }
    steps, _, report = converted("A", **states)
    assert steps["A"]["args"]["payload"] == {"n": "${{ TRIGGER.payload.n + 1 }}"}
    assert [(note.state, note.weight) for note in report.notes if "JSONata" in note.message] == [("B", "manual")]


def test_variables_are_read_where_they_were_assigned() -> None:
    first = {"Type": "Pass", "QueryLanguage": "JSONata", "Assign": {"id": "{% $states.input.id %}"}, "Next": "B"}
    second = {**invoke(Arguments={"id": "{% $id %}"}), "QueryLanguage": "JSONata"}
    steps, _, _ = converted("A", A=first, B=second)
    assert steps["B"]["args"]["payload"] == {"id": "${{ TRIGGER.payload.id }}"}


def test_a_loop_is_named_and_left_out() -> None:
    rule = {"Variable": "$.done", "BooleanEquals": False, "Next": "A"}
    states: dict[str, Document] = {
        "A": {**invoke(), "End": False, "Next": "B"},
        "B": {"Type": "Choice", "Choices": [rule], "Default": "C"},
        "C": {"Type": "Succeed"},
    }
    _, edges, report = converted("A", **states)
    assert not any(edge["target_ref"] == "A" for edge in edges)
    assert any("leads back" in note.message for note in report.notes)


@pytest.mark.parametrize(
    ("path", "cel"),
    [
        ("$", "TRIGGER.payload"),
        ("$.a.b[0]['c d']", 'TRIGGER.payload.a.b[0]["c d"]'),
        ("$$.Execution.Id", "RUN.id"),
        ("States.Format('{} of {}', $.a, 2)", '(string(TRIGGER.payload.a) + " of " + string(2))'),
        ("States.Array($.a, 'x')", '[TRIGGER.payload.a, "x"]'),
        ("States.ArrayLength($.a)", "size(TRIGGER.payload.a)"),
    ],
)
def test_paths(path: str, cel: str) -> None:
    assert json_path(path, Data("TRIGGER.payload")) == cel


@pytest.mark.parametrize("path", ["$.a[*]", "$..a", "$.a[?(@.b)]", "$.a[1:2]", "States.UUID()", "$$.Task.Token", "a"])
def test_paths_that_are_not_carried_over(path: str) -> None:
    with pytest.raises(NotCarriedError):
        json_path(path, Data("TRIGGER.payload"))


ODD = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-2, 2)
    | st.sampled_from(["A", "B", "$.a", "$", "{% $states.input %}", "x"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["Next", "a.$", "ErrorEquals"]), inner),
    max_leaves=4,
)
FIELDS = (
    *("Next", "End", "Default", "Choices", "Branches", "ItemProcessor", "Retry", "Catch", "Parameters"),
    *("ResultPath", "InputPath", "OutputPath", "ResultSelector", "Seconds", "Arguments", "Output", "Assign", "Result"),
    *("Resource", "TimeoutSeconds", "ItemSelector", "QueryLanguage", "MaxConcurrency", "Cause", "ErrorPath"),
)
STATE = st.fixed_dictionaries(
    {"Type": st.sampled_from(["Task", "Choice", "Parallel", "Map", "Wait", "Pass", "Succeed", "Fail", "Odd"])},
    optional=dict.fromkeys(FIELDS, ODD),
)


@given(st.dictionaries(st.sampled_from(["A", "B", "C"]), STATE | ODD, max_size=3), ODD)
def test_any_machine_gives_a_document_and_a_report(states: Document, comment: Any) -> None:
    document, report = convert({"StartAt": "A", "States": states, "Comment": comment}, "any")
    validate({**document, "environment": "default"}, Context(catalog=Actions(), now=0))
    assert report.complete or all(note.message for note in report.notes)


@pytest.mark.parametrize(
    "states",
    [
        {},
        {"A": {}},
        {"A": {"Type": "Odd"}},
        {"A": {"Type": "Choice"}},
        {"A": {"Type": "Map"}},
        {"A": {"Type": "Parallel"}},
    ],
)
def test_an_odd_machine_is_reported_not_raised(states: Document) -> None:
    convert({"StartAt": "A", "States": states}, "odd")


def nested(levels: int) -> str:
    """A machine whose states stand in so many Parallels."""
    text = '{"StartAt": "p", "States": {"p": {"Type": "Pass", "End": true}}}'
    for _ in range(levels):
        text = f'{{"StartAt": "p", "States": {{"p": {{"Type": "Parallel", "End": true, "Branches": [{text}]}}}}}}'
    return text


@pytest.mark.parametrize("text", [nested(60), nested(2_000), '{"States": ' + "[" * 100_000])
def test_a_file_that_nests_too_deeply_is_refused_with_its_code(text: str, tmp_path: Path) -> None:
    file = tmp_path / "deep.asl.json"
    file.write_text(text)
    result = CliRunner().invoke(app, ["workflow", "import", "asl", str(file)])
    assert result.exit_code == Exit.FAILED
    assert result.stderr == f"error: {file}: objects and arrays may be nested 200 deep [NESTING_TOO_DEEP]\n"


def test_what_nests_as_deeply_as_a_file_may_is_imported(tmp_path: Path) -> None:
    file = tmp_path / "deep.asl.json"
    file.write_text(nested(48))
    result = CliRunner().invoke(app, ["workflow", "import", "asl", str(file)])
    assert result.stdout.count("join: all") == 48


def test_functions_in_functions_without_end_are_named() -> None:
    _, _, report = converted("A", A={"Type": "Pass", "Parameters": {"x.$": "States.Array(" * 3_000 + ")" * 3_000}})
    assert any("calls more than 50 functions" in note.message for note in report.notes)
