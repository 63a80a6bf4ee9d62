"""Objects and items: what is written comes back exactly, conditions hold, and a repetition does nothing twice."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.aws.cloud import Cloud

from ductor.actions.aws.values import from_dynamodb, to_dynamodb, token, typed_bytes, typed_texts
from ductor.actions.errors import ActionError

DOC = {"bucket": "docs", "key": "a b/ü.json"}


@pytest.fixture
def docs(cloud: Cloud) -> Cloud:
    cloud.client("s3").create_bucket(Bucket="docs")
    return cloud


@pytest.fixture
def orders(cloud: Cloud) -> Cloud:
    cloud.client("dynamodb").create_table(
        TableName="orders",
        BillingMode="PAY_PER_REQUEST",
        AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "S"}],
        KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
    )
    return cloud


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ({"json": {"n": 0.1, "big": 2**63}}, {"body": {"n": 0.1, "big": 2**63}}),
        ({"body": "héllo"}, {"body": "héllo"}),
        ({"body": "{no json", "content_type": "application/json"}, {"body": "{no json"}),
        ({"body_base64": base64.b64encode(b"\xff\x00").decode()}, {"body_base64": "/wA="}),
        ({"json": None}, {"body": None}),
    ],
)
def test_an_object_comes_back_as_it_was_written(docs: Cloud, given: dict[str, Any], found: dict[str, Any]) -> None:
    written = docs.act("s3.put_object", {**DOC, **given, "metadata": {"who": "ada"}})
    read = docs.act("s3.get_object", DOC)
    assert {name: read[name] for name in found} == found
    assert (read["etag"], read["metadata"]["who"]) == (written["etag"], "ada")


def test_an_object_that_is_absent_too_large_or_of_another_kind_fails(docs: Cloud) -> None:
    assert docs.fails("s3.get_object", DOC).code == "S3.NoSuchKey"
    docs.act("s3.put_object", {**DOC, "body_base64": base64.b64encode(b"\xff" * 100).decode()})
    fault = docs.fails("s3.get_object", {**DOC, "max_bytes": 99})
    assert (fault.code, fault.retryable, fault.details["bytes"]) == ("S3.ObjectTooLarge", False, 100)
    for form in ("text", "json"):
        assert docs.fails("s3.get_object", {**DOC, "form": form}).code == "CONTENT_INVALID"


def test_an_object_is_not_overwritten_by_another_step_and_a_repetition_is_no_other(docs: Cloud) -> None:
    args = {**DOC, "body": "mine", "if_absent": True}
    first = docs.act("s3.put_object", args)
    assert docs.act("s3.put_object", args) == first
    fault = docs.fails("s3.put_object", {**args, "body": "yours"}, key="run-2/step")
    assert (fault.code, fault.retryable) == ("S3.PreconditionFailed", False)
    assert docs.act("s3.get_object", DOC)["body"] == "mine"


@pytest.mark.parametrize("bodies", [{}, {"body": "a", "json": 1}, {"body_base64": "?"}])
def test_an_object_has_one_body(docs: Cloud, bodies: dict[str, Any]) -> None:
    assert docs.fails("s3.put_object", {**DOC, **bodies}).code == "ACTION_ARGS_INVALID"


ITEM = {"id": "1", "price": 0.1, "count": 12345678901234567890 % 2**64, "tags": ["a", None], "deep": {"ok": True}}


def test_an_item_comes_back_as_it_was_written(orders: Cloud) -> None:
    assert orders.act("dynamodb.put_item", {"table": "orders", "item": ITEM}) == {"written": True}
    read = orders.act("dynamodb.get_item", {"table": "orders", "key": {"id": "1"}})
    assert read == {"found": True, "item": ITEM}
    part = orders.act("dynamodb.get_item", {"table": "orders", "key": {"id": "1"}, "attributes": ["price"]})
    assert part["item"] == {"price": 0.1}
    assert orders.act("dynamodb.get_item", {"table": "orders", "key": {"id": "2"}}) == {"found": False, "item": None}


def test_the_own_notation_keeps_sets_bytes_and_every_digit(orders: Cloud) -> None:
    item = {"id": {"S": "1"}, "n": {"N": "1.2345678901234567890123"}, "b": {"B": "/wA="}, "s": {"SS": ["a", "b"]}}
    orders.act("dynamodb.put_item", {"table": "orders", "typed": True, "item": item})
    key = {"table": "orders", "typed": True, "key": {"id": {"S": "1"}}}
    read = orders.act("dynamodb.get_item", key)["item"]
    assert {**read, "s": {"SS": sorted(read["s"]["SS"])}} == item
    plain = orders.act("dynamodb.get_item", {"table": "orders", "key": {"id": "1"}})["item"]
    assert plain == {"id": "1", "n": "1.2345678901234567890123", "b": "/wA=", "s": ["a", "b"]}


def test_a_condition_that_fails_shows_the_item_in_the_way(orders: Cloud) -> None:
    args = {"table": "orders", "item": {"id": "1", "n": 1}, "condition": "attribute_not_exists(id)"}
    orders.act("dynamodb.put_item", args)
    fault = orders.fails("dynamodb.put_item", {**args, "item": {"id": "1", "n": 2}}, key="run-2/step")
    assert (fault.code, fault.retryable) == ("DynamoDB.ConditionalCheckFailedException", False)
    assert orders.act("dynamodb.get_item", {"table": "orders", "key": {"id": "1"}})["item"]["n"] == 1


def test_an_update_gives_the_item(orders: Cloud) -> None:
    args = {"table": "orders", "key": {"id": "1"}, "update": "ADD #n :one", "names": {"#n": "n"}, "values": {":one": 1}}
    for once in (True, False):
        done = orders.act("dynamodb.update_item", {**args, "once": once, "return_item": True})
    assert done == {"written": True, "item": {"id": "1", "n": 2}}
    assert orders.act("dynamodb.update_item", args) == {"written": True}


@pytest.mark.parametrize(
    ("action", "args"),
    [
        ("dynamodb.put_item", {"item": {"id": "1"}, "condition": "attribute_not_exists(id)"}),
        ("dynamodb.put_item", {"item": {"id": "1"}, "once": True}),
        ("dynamodb.update_item", {"key": {"id": "1"}, "update": "REMOVE a"}),
    ],
)
def test_a_repeated_write_has_the_token_of_the_step(orders: Cloud, action: str, args: dict[str, Any]) -> None:
    """The token is what DynamoDB takes a repetition for done by; moto does not."""
    with orders.answering("dynamodb", (200, {}, b"{}")):
        for key in ("run-1/step", "run-1/step", "run-2/step"):
            orders.act(action, {"table": "orders", **args}, key=key)
    tokens = [params["ClientRequestToken"] for params in orders.params if "TransactItems" in params]
    assert tokens == [token("run-1/step"), token("run-1/step"), token("run-2/step")]
    assert tokens[0] != tokens[2]


@pytest.mark.parametrize(
    ("code", "told", "retryable"),
    [
        ("TransactionConflict", "TransactionConflict", True),
        ("ThrottlingError", "ThrottlingError", True),
        ("ValidationError", "ValidationException", False),
        ("ConditionalCheckFailed", "ConditionalCheckFailedException", False),
    ],
)
def test_why_a_write_was_cancelled_is_the_code(orders: Cloud, code: str, told: str, retryable: bool) -> None:
    body = (
        '{"__type": "com.amazonaws.dynamodb.v20120810#TransactionCanceledException", "Message": "cancelled", '
        f'"CancellationReasons": [{{"Code": "{code}", "Message": "because", "Item": {{"id": {{"S": "1"}}}}}}]}}'
    )
    with orders.answering("dynamodb", (400, {}, body.encode())):
        fault = orders.fails("dynamodb.update_item", {"table": "orders", "key": {"id": "1"}, "update": "REMOVE a"})
    assert (fault.code, fault.message, fault.retryable) == (f"DynamoDB.{told}", "because", retryable)
    assert fault.details["item"] == {"id": "1"}


NUMBERS = st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False, allow_infinity=False).filter(
    # A larger whole float comes back as the integer that its JSON text says.
    lambda value: value == 0 or 1e-120 < abs(value) < 2**53
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.text() | NUMBERS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(VALUES)
def test_no_value_is_changed_on_the_way(value: Any) -> None:
    assert from_dynamodb(to_dynamodb(value, "item")) == value


@given(VALUES)
def test_the_own_notation_is_not_changed_either(value: Any) -> None:
    typed = to_dynamodb(value, "item")
    assert typed_texts(typed_bytes(typed, "item")) == typed


@pytest.mark.parametrize("value", [1e300, 1e-200])
def test_a_number_that_dynamodb_cannot_hold_is_named(value: float) -> None:
    with pytest.raises(ActionError, match=r"item\.n: DynamoDB holds numbers"):
        to_dynamodb({"n": value}, "item")


@pytest.mark.parametrize("value", ["text", {}, {"S": "a", "N": "1"}, {"N": "many"}, {"B": "?"}, {"B": 5}])
def test_what_is_not_in_the_own_notation_is_named(value: Any) -> None:
    with pytest.raises(ActionError, match=r"item\.a: with typed: true"):
        typed_bytes({"M": {"a": value}}, "item")
