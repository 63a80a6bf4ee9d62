"""Whatever JSON arrives, every function of the document answers and none raises."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from tests.unit.validation.samples import OFFLINE, SERVER, found

from ductor.model.enums import EdgeType, StepType
from ductor.model.json import encode
from ductor.validation.document import canonical, check_saveable, to_definition, to_wire
from ductor.validation.document_shape import CHECKPOINT, DOCUMENT, EDGE, HOOK, SCHEDULE, STEP, TARGET, TRIGGER
from ductor.validation.validator import refuses

NAMES = sorted(
    {
        *(
            name
            for shape in (DOCUMENT, STEP, EDGE, TRIGGER, CHECKPOINT, SCHEDULE, HOOK, TARGET)
            for name in shape.fields
        ),
        *("id", "on_failure", "on_cancel", "finally", "context", "visibility", "on_failed", "key", "limit", "default"),
        *("input", "operation", "project", "expr", "duration", "where", "$ref", "pattern", "type", "unknown"),
    }
)
TEXTS = st.sampled_from(
    [
        *(
            "",
            "a",
            "b",
            "1 +",
            "true",
            "STEPS.a.output",
            "${{ STEPS.b.output }}",
            "${{",
            "ITEM",
            "core.echo",
            "x" * 300,
        ),
        *("0 0 31 2 *", "* * * * *", "Europe/Berlin", "2s", "direct", "none", "omit", "ductor.x", "default", "locked"),
        *(member.wire for enum in (StepType, EdgeType) for member in enum),
    ]
)
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | TEXTS
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=6),
    max_leaves=25,
)


def _record(fields: Any) -> st.SearchStrategy[dict[str, Any]]:
    return st.dictionaries(st.sampled_from(sorted(fields)), VALUES, max_size=6)


DOCUMENTS = st.fixed_dictionaries(
    {},
    optional={
        "family_slug": TEXTS,
        "steps": st.lists(
            st.fixed_dictionaries(
                {"ref": st.sampled_from("abAB"), "type": st.sampled_from([kind.value for kind in StepType])},
                optional={name: VALUES for name in STEP.fields if name not in ("ref", "type")},
            ),
            max_size=4,
        ),
        "edges": st.lists(_record(EDGE.fields), max_size=4),
        "triggers": st.lists(_record(TRIGGER.fields), max_size=2) | VALUES,
        "checkpoints": st.lists(_record(CHECKPOINT.fields), max_size=2) | VALUES,
        "schedule": _record(SCHEDULE.fields),
        "input_schema": VALUES,
        "hooks": VALUES,
        "output": VALUES,
        "variables": VALUES,
        "concurrency": VALUES,
    },
)


@given(DOCUMENTS | VALUES)
def test_any_json_is_judged_and_the_judgement_can_be_sent(document: Any) -> None:
    for context in (OFFLINE, SERVER):
        encode([(item.field, item.code, item.message) for item in found(document, context)])
    encode([(item.field, item.code, item.message) for item in check_saveable(document)])


@given(DOCUMENTS)
def test_what_may_be_saved_can_be_answered_and_read_again(document: Any) -> None:
    if check_saveable(document):
        return
    stored = canonical(document)
    assert check_saveable(to_wire(stored)) == []
    assert canonical(stored) == stored
    if not refuses(found(stored)):
        assert to_definition(stored) == to_definition(to_wire(stored))


def test_lists_beyond_their_limit_may_hold_anything() -> None:
    for name in ("triggers", "checkpoints", "tags"):
        assert found({"family_slug": "x", "steps": [], name: [1] * 1_000})
