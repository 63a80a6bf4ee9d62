"""Reading documents: spellings, aliases, what a draft may hold, and the forms that leave again."""

from __future__ import annotations

from typing import Any, cast

import msgspec
import pytest
from tests.unit.validation.references import CONNECTOR_YAML, HELLO_JSON, HELLO_YAML, REVIEW_JSON
from tests.unit.validation.samples import Doc, codes, doc, echo, edge, errors, found

from ductor.model.definition import Retry
from ductor.model.enums import EdgeType, OnError, RedactionPolicy, StepType
from ductor.model.json import decode, encode
from ductor.steps.registry import STEP_SPECS
from ductor.steps.spec import StepSpec
from ductor.validation.document import canonical, check_saveable, to_definition, to_wire
from ductor.validation.source import read_source


def _read(text: str, *, as_json: bool = False) -> Any:
    body, violations = read_source(text, as_json=as_json)
    assert violations == []
    return body


def test_the_guides_yaml_and_json_are_one_definition() -> None:
    one, other = _read(HELLO_YAML), _read(HELLO_JSON, as_json=True)
    assert found(one) == found(other) == []
    assert to_definition(one) == to_definition(other)
    assert to_definition(one).steps[0].redaction_policy is RedactionPolicy.NONE


def test_the_guides_connector_step_is_valid() -> None:
    body = _read(CONNECTOR_YAML)
    assert found(body) == []
    assert to_definition(body).steps[0].retry == Retry(max_attempts=3, backoff_ms=1000)


def test_the_guides_approval_is_a_valid_definition() -> None:
    body = _read(REVIEW_JSON, as_json=True)
    assert check_saveable(body) == []
    assert found(body) == []


@pytest.mark.parametrize("spelling", ["action", "ACTION", "Action", "STEP_TYPE_ACTION", "step_type_action"])
def test_step_types_are_read_in_both_spellings_and_any_case(spelling: str) -> None:
    assert to_definition(doc(echo(type=spelling))).steps[0].type is StepType.ACTION


@pytest.mark.parametrize("spelling", ["error", "ERROR", "EDGE_TYPE_ERROR", "edge_type_error"])
def test_edge_types_are_read_in_both_spellings_and_any_case(spelling: str) -> None:
    document = doc(echo(), echo("b"), edges=[edge("a", "b", type=spelling)])
    assert found(document) == []
    assert to_definition(document).edges[0].type is EdgeType.ERROR


@pytest.mark.parametrize("spelling", ["continue", "CONTINUE", "ON_ERROR_CONTINUE"])
def test_other_enums_are_read_in_both_spellings_too(spelling: str) -> None:
    assert to_definition(doc(echo(on_error=spelling))).steps[0].on_error is OnError.CONTINUE


def test_answers_use_the_long_spelling_and_lose_nothing() -> None:
    document = canonical(doc(echo(retry_max_attempts=3), echo("b"), edges=[edge("a", "b")], title="T"))
    wire = to_wire(document)
    assert wire["steps"][0] == echo(type="STEP_TYPE_ACTION", retry_max_attempts=3)
    assert wire["edges"] == [edge("a", "b", type="EDGE_TYPE_SUCCESS")]
    assert to_definition(wire) == to_definition(document)


def test_canonical_documents_are_a_fixed_point_and_survive_storage() -> None:
    document = canonical(_read(HELLO_JSON, as_json=True))
    assert canonical(document) == document == canonical(to_wire(document))
    assert decode(encode(document)) == document


def test_id_is_another_name_of_ref() -> None:
    step = echo()
    del step["ref"]
    assert canonical(doc(step | {"id": "a"})) == canonical(doc(echo("a")))


def test_id_and_ref_that_differ_are_refused() -> None:
    assert [(item.field, item.code) for item in check_saveable(doc(echo("a", id="b")))] == [("a.id", "FIELD_INVALID")]


def test_null_means_absent() -> None:
    assert canonical(doc(echo(condition=None, args=None), title=None)) == canonical(doc())


def test_flat_retry_fields_become_one_policy() -> None:
    step = echo(
        retry_max_attempts=5,
        retry_backoff_ms=10,
        retry_backoff_multiplier=3,
        retry_max_backoff_ms=100,
        retry_jitter=0,
        retry_max_elapsed_ms=1000,
        non_retryable_codes=["NO"],
    )
    assert to_definition(doc(step)).steps[0].retry == Retry(5, 10, 3.0, 100, 0.0, 1000, ("NO",))


def test_compensation_targets_have_their_own_retry() -> None:
    target = {"action": "core.echo", "retry_max_attempts": 7}
    definition = to_definition(doc(echo(compensation={"finally": [target]})))
    compensation = definition.steps[0].compensation
    assert compensation is not None
    assert compensation.finally_[0].retry.max_attempts == 7


def test_variables_get_one_form() -> None:
    definition = to_definition(doc(variables={"a": 1, "b": {"default": 2, "overridable": True}, "c": {"x": 1}}))
    assert definition.variables == {
        "a": {"default": 1, "overridable": False},
        "b": {"default": 2, "overridable": True},
        "c": {"default": {"x": 1}, "overridable": False},
    }


def test_a_connection_is_direct_unless_it_says_otherwise() -> None:
    assert to_definition(doc(echo(connection_ref="c"))).steps[0].connection_ref_mode == "direct"


def test_a_definition_that_is_not_valid_does_not_convert() -> None:
    with pytest.raises(ValueError, match="not a valid definition"):
        to_definition(doc({"ref": "a", "type": "nonsense"}))


SAVEABLE = [
    doc(echo(type="nonsense")),
    doc(echo("not a ref")),
    doc(echo(retry_max_attempts=0)),
    doc(echo(condition="1 +")),
    doc(edges=[edge("a", "nowhere")]),
    {},
    {"family_slug": "x", "steps": [{}]},
]


@pytest.mark.parametrize("document", SAVEABLE)
def test_a_draft_may_hold_what_a_person_has_yet_to_repair(document: Doc) -> None:
    assert check_saveable(document) == []
    assert errors(document)


BROKEN: list[tuple[Any, str, str]] = [
    (None, "", "FIELD_INVALID"),
    ([], "", "FIELD_INVALID"),
    (doc(title=5), "title", "FIELD_INVALID"),
    (doc(steps={}), "steps", "FIELD_INVALID"),
    (doc(steps=[1]), "steps[0]", "FIELD_INVALID"),
    (doc(echo(args=[])), "a.args", "FIELD_INVALID"),
    (doc(echo(condition=True)), "a.condition", "FIELD_INVALID"),
    (doc(edges=[{"source_ref": 1}]), "edges[0].source_ref", "FIELD_INVALID"),
    (doc(colour="red"), "colour", "FIELD_UNKNOWN"),
    (doc(edges=[edge("a", "a", typ="x")]), "edges[0].typ", "FIELD_UNKNOWN"),
    (doc(echo("x"), echo("X")), "X.ref", "STEP_REF_DUPLICATE"),
    (doc(steps=[{}] * 501), "steps", "DEFINITION_TOO_LARGE"),
    (doc(edges=[{}] * 5001), "edges", "DEFINITION_TOO_LARGE"),
]


@pytest.mark.parametrize(("document", "field", "code"), BROKEN)
def test_what_a_draft_may_not_hold_refuses_the_save(document: Any, field: str, code: str) -> None:
    assert (field, code) in {(item.field, item.code) for item in check_saveable(document)}


def test_size_is_judged_first_and_alone() -> None:
    document = {"nonsense": 1, "steps": [{"x": 1}] * 501, "edges": [5] * 5001}
    assert [item.code for item in found(document)] == ["DEFINITION_TOO_LARGE"]
    assert [item.code for item in check_saveable(document)] == ["DEFINITION_TOO_LARGE"]


def test_an_unknown_field_names_the_nearest_one() -> None:
    message = next(item.message for item in check_saveable(doc(echo(retry_max_atempts=1))))
    assert "'retry_max_attempts'" in message


def test_a_condition_that_is_written_as_a_template_is_told_to_drop_the_braces() -> None:
    violations = found(doc(echo(condition="${{ TRIGGER.payload.ok }}")))
    assert [(item.field, item.code) for item in violations] == [("a.condition", "CEL_SYNTAX")]
    assert "without ${{ }}" in violations[0].message


def test_everything_wrong_is_said_at_once() -> None:
    document = doc(
        echo("a", condition="1 +", retry_max_attempts=0, colour="red"),
        {"ref": "w", "type": "wait", "args": {"duration": "soon"}},
        {"ref": "x", "type": "nonsense"},
        edges=[edge("a", "q"), edge("w", "a", type="true")],
        schedule={"cron": "0 0 31 2 *"},
        title="x" * 201,
    )
    assert {
        ("a.condition", "CEL_SYNTAX"),
        ("a.retry_max_attempts", "RETRY_INVALID"),
        ("a.colour", "FIELD_UNKNOWN"),
        ("w.args.duration", "WAIT_SPEC_INVALID"),
        ("x.type", "STEP_TYPE_UNKNOWN"),
        ("edges[0].target_ref", "EDGE_ENDPOINT_UNKNOWN"),
        ("edges[1].type", "EDGE_TYPE_INVALID"),
        ("schedule.cron", "SCHEDULE_CRON_INVALID"),
        ("title", "FIELD_INVALID"),
    } <= errors(document)


RETRY_BAD: list[tuple[str, Any]] = [
    *(("retry_max_attempts", value) for value in (0, -1, 101, 2.5, 3.0, "3", True, 10**30)),
    *(("retry_backoff_ms", value) for value in (-1, 86400001, 9223372036854775807, 1.5, "1")),
    *(
        ("retry_backoff_multiplier", value)
        for value in (0, 0.5, -1, 10.5, 1e308, float("nan"), float("inf"), "2", True)
    ),
    *(("retry_max_backoff_ms", value) for value in (-1, 86400001, 1.5)),
    *(("retry_jitter", value) for value in (-0.1, 1.1, float("nan"), "0")),
    *(("retry_max_elapsed_ms", value) for value in (-1, 9223372036855, 0.5)),
    ("non_retryable_codes", [1]),
]


@pytest.mark.parametrize(("field", "value"), RETRY_BAD)
def test_absurd_retry_values_are_refused(field: str, value: Any) -> None:
    assert "RETRY_INVALID" in codes(doc(echo(**{field: value})))


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("retry_max_attempts", 1),
        ("retry_max_attempts", 100),
        ("retry_backoff_ms", 0),
        ("retry_backoff_ms", 86400000),
        ("retry_backoff_multiplier", 1),
        ("retry_backoff_multiplier", 10.0),
        ("retry_max_backoff_ms", 86400000),
        ("retry_jitter", 0),
        ("retry_jitter", 1.0),
    ],
)
def test_retry_bounds_are_inclusive(field: str, value: Any) -> None:
    assert found(doc(echo(**{field: value}))) == []


def test_steps_without_a_ref_are_named_by_their_place() -> None:
    assert ("steps[1].ref", "FIELD_REQUIRED") in errors(doc(echo(), {"type": "wait", "args": {"duration": "1s"}}))


def test_a_type_that_cannot_run_yet_is_refused_at_publish_only(monkeypatch: pytest.MonkeyPatch) -> None:
    planned = msgspec.structs.replace(STEP_SPECS[StepType.BRIDGE], executable=False)
    monkeypatch.setitem(cast(dict[StepType, StepSpec], STEP_SPECS), StepType.BRIDGE, planned)
    document = doc({"ref": "b", "type": "bridge", "args": {"task_type": "render"}})
    assert check_saveable(document) == []
    violations = found(document)
    assert [(item.field, item.code) for item in violations] == [("b.type", "STEP_TYPE_UNKNOWN")]
    assert "does not run bridge steps yet" in violations[0].message
