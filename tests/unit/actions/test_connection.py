"""A connection's secrets: given to the action, shown by nothing."""

from __future__ import annotations

import copy
import json
import pickle
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from pydantic import BaseModel

from ductor.actions.connection import Connection, Secret, holds_secret, without_secrets
from ductor.actions.context import ActionContext
from ductor.actions.errors import ActionError
from ductor.actions.exact import NotExactError, exact

TEXT = "sk_live_abcdef"
SECRET = Secret(TEXT)
CONNECTION = Connection(id="1", slug="main", type="stripe", settings={"username": "ada"}, secrets={"api_key": SECRET})


class Loose(BaseModel, arbitrary_types_allowed=True):
    value: Any


@pytest.mark.parametrize("show", [str, repr, "{0}".format, "{0!r}".format, "{0:>20}".format, lambda value: f"{value}"])
@pytest.mark.parametrize("value", [SECRET, CONNECTION, ActionContext(connection=CONNECTION), {"a": [SECRET]}])
def test_no_text_shows_a_secret(show: Callable[[Any], str], value: Any) -> None:
    if show != "{0:>20}".format or value is SECRET:
        assert TEXT not in show(value)


@pytest.mark.parametrize("dump", [json.dumps, msgspec.json.encode, msgspec.msgpack.encode, pickle.dumps, copy.deepcopy])
@pytest.mark.parametrize("value", [SECRET, {"deep": [SECRET]}])
def test_nothing_serialises_a_secret(dump: Callable[[Any], Any], value: Any) -> None:
    with pytest.raises(TypeError):
        dump(value)


def test_a_model_with_a_secret_has_no_json() -> None:
    with pytest.raises(ValueError, match="serialize"):
        Loose(value=SECRET).model_dump_json()


def test_a_secret_is_no_output() -> None:
    with pytest.raises(NotExactError) as raised:
        exact({"key": SECRET}, "output")
    assert TEXT not in str(raised.value)


def test_the_action_gets_the_secret() -> None:
    assert CONNECTION.secret("api_key").reveal() == TEXT


def test_a_secret_that_is_not_there_is_told() -> None:
    with pytest.raises(ActionError) as raised:
        CONNECTION.secret("token")
    assert (raised.value.code, raised.value.retryable) == ("CONNECTION_INCOMPLETE", False)


def test_secrets_are_taken_out_of_values() -> None:
    basic = "YWRhOnNrX2xpdmVfYWJjZGVm"
    value = {f"x-{TEXT}": [f"Bearer {TEXT}", {"header": f"Basic {basic}"}, 1, None], "plain": "kept"}
    assert without_secrets(value, CONNECTION) == {
        "x-***": ["Bearer ***", {"header": "Basic ***"}, 1, None],
        "plain": "kept",
    }


def test_of_two_secrets_no_part_is_left_over() -> None:
    both = Connection(id="1", slug="s", type="t", secrets={"a": Secret("abcdef"), "b": Secret("abcdef-longer")})
    assert both.redact("[abcdef-longer] [abcdef]") == "[***] [***]"


@pytest.mark.parametrize("text", ["sk_live_abcdef", 'with "quotes" in it', "line\nbreak and \\", "snöwman ☃ secret"])
def test_a_secret_in_encoded_json_is_found(text: str) -> None:
    own = Connection(id="1", slug="s", type="t", secrets={"a": Secret(text)})
    assert holds_secret(msgspec.json.encode({"echo": f"<{text}>"}), own)


def test_plain_output_is_not_searched_twice() -> None:
    assert not holds_secret(b'{"id":"in_1"}', CONNECTION)
