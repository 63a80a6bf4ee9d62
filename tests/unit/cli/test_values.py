"""Values written on the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from ductor.cli.failure import Exit, Failure
from ductor.cli.trigger import Request
from ductor.cli.values import json_value, labels, pair


def test_input_is_json_or_a_file(tmp_path: Path) -> None:
    file = tmp_path / "input.json"
    file.write_text('{"n": 9007199254740993}')

    assert json_value('{"n": 1}', "--input") == {"n": 1}
    assert json_value(f"@{file}", "--input") == {"n": 9007199254740993}


@pytest.mark.parametrize("text", ["{", "NaN", "[1,]", " ", "@/no/such/file.json"])
def test_what_is_no_json_is_a_usage_error(text: str) -> None:
    with pytest.raises(Failure) as raised:
        json_value(text, "--input")

    assert raised.value.code is Exit.USAGE
    assert raised.value.message.startswith("--input: ")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[" * 200_000, "--input: the value: objects and arrays may be nested 200 deep [NESTING_TOO_DEEP]"),
        ("[" * 202 + "]" * 202, "--input: the value: objects and arrays may be nested 200 deep [NESTING_TOO_DEEP]"),
        ('{"a": {"b": 1, "b": 2}}', "--input: the value: a.b: this key appears twice in one object; keep one of them"),
        ('{"a": 1e999}', "--input: the value: a: this number is too large for a 64-bit float [NUMBER_OUT_OF_RANGE]"),
        ("{", "--input: the value is not JSON: Expecting property name"),
    ],
)
def test_what_the_server_would_refuse_is_refused_with_its_place_and_code(text: str, said: str) -> None:
    with pytest.raises(Failure) as raised:
        json_value(text, "--input")
    assert raised.value.message.startswith(said)


def test_a_subject_may_hold_further_colons() -> None:
    assert pair("lead:a:b", ":", "--subject", "type:id") == ("lead", "a:b")


@pytest.mark.parametrize("text", ["lead", ":1", "lead:"])
def test_half_a_subject_is_refused_with_the_form(text: str) -> None:
    with pytest.raises(Failure, match="--subject: write it as type:id"):
        pair(text, ":", "--subject", "type:id")


def test_labels_are_key_and_id() -> None:
    assert labels(["order=o=1", "import=7"]) == [("order", "o=1"), ("import", "7")]


def test_trigger_body_holds_only_what_was_given() -> None:
    assert Request("f", "", "", "", ()).body() == {}
    assert Request("f", "[1]", "key-1", "lead:7", ("order=o-1",)).body() == {
        "input": [1],
        "idempotency_key": "key-1",
        "subject_type": "lead",
        "subject_id": "7",
        "correlation_labels": [{"key": "order", "id": "o-1"}],
    }
