"""Publishing a definition file."""

from __future__ import annotations

import pytest
from tests.unit.cli.server import Answer, Server

from ductor.cli.client import Refused
from ductor.cli.failure import Failure
from ductor.cli.publish import publish
from ductor.cli.sources import Source

FILE = Source(
    "hello.yaml",
    b"""\
type: workflow_definition
definition:
  family_slug: hello
  steps:
    - ref: greet
      type: action
      action: core.echo
""",
)
CREATE = "POST /api/workflow-definitions"
EDIT = "PATCH /api/workflow-definitions/d-1/draft"
PUBLISH = "POST /api/workflow-definitions/d-1/publish"
DRAFT = {"id": "d-1", "draft_revision": 5}
VERSION: Answer = (200, {"published": {"id": "v-2", "version": 2, "family_slug": "hello"}, "warnings": []})
TAKEN: Answer = (
    409,
    {"error_code": "ALREADY_EXISTS", "message": "taken", "errors": [{"code": "DRAFT_EXISTS", "message": "m"}]},
)


def test_new_family_is_created_and_published() -> None:
    server = Server({CREATE: [(201, {"data": DRAFT})], PUBLISH: [VERSION]})

    assert publish(server.client(), FILE) == "hello version 2 (v-2)"
    assert server.bodies(CREATE)[0]["steps"][0]["ref"] == "greet"
    assert server.bodies(PUBLISH) == [{"expected_draft_revision": 5}]


def test_existing_draft_becomes_equal_to_the_file() -> None:
    edited = {"data": {"id": "d-1", "draft_revision": 6}}
    server = Server(
        {
            CREATE: [TAKEN],
            "GET /api/workflow-definitions": [(200, {"data": [DRAFT]})],
            EDIT: [(200, edited)],
            PUBLISH: [VERSION],
        }
    )

    publish(server.client(), FILE)

    changes = server.bodies(EDIT)[0]
    assert changes["expected_draft_revision"] == 5
    assert changes["edges"] is None
    assert changes["steps"][0]["ref"] == "greet"
    assert "environment" not in changes
    assert server.bodies(PUBLISH) == [{"expected_draft_revision": 6}]


def test_remarks_of_the_publication_are_shown() -> None:
    warning = {"field": "", "code": "NO_CHANGES", "message": "as version 1", "severity": "warning"}
    answer: Answer = (200, {"published": {"id": "v", "version": 2, "family_slug": "hello"}, "warnings": [warning]})
    server = Server({CREATE: [(201, {"data": DRAFT})], PUBLISH: [answer]})

    assert publish(server.client(), FILE).splitlines()[1] == "  warning: as version 1 [NO_CHANGES]"


def test_refusal_leads_to_the_lines_of_the_file() -> None:
    item = {"field": "greet.action", "code": "ACTION_UNKNOWN", "message": "no such action"}
    body = {"error_code": "INVALID_ARGUMENT", "message": "cannot be published", "errors": [item]}
    server = Server({CREATE: [(201, {"data": DRAFT})], PUBLISH: [(400, body)]})

    with pytest.raises(Refused) as raised:
        publish(server.client(), FILE)

    assert raised.value.lines()[1] == "  hello.yaml:7: greet.action: no such action (ACTION_UNKNOWN)"


@pytest.mark.parametrize("data", [b"\xff", b"steps: [", b"- 1", b"a: 1\na: 2\n"])
def test_a_file_that_is_no_definition_is_never_sent(data: bytes) -> None:
    server = Server({})

    with pytest.raises(Failure, match=r"hello\.yaml"):
        publish(server.client(), Source("hello.yaml", data))

    assert server.requests == []
