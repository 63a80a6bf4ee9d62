"""docs/testing.md: its sample passes as it stands there, and the fields in its tables are those of the file."""

from __future__ import annotations

import re

from tests.unit.cases.bench import ACTIONS, ROOT

from ductor.testing.cases.document import VERBS, CaseFile, Faults, Given, Reply
from ductor.testing.cases.expected import Expected
from ductor.testing.cases.runner import Options, run_file

GUIDE = (ROOT / "docs" / "testing.md").read_text()
BLOCKS = re.findall(r"^```yaml\n(.*?)^```", GUIDE, re.MULTILINE | re.DOTALL)


def test_the_sample_passes() -> None:
    tests = next(block for block in BLOCKS if block.startswith("type: workflow_test"))
    flow = next(block for block in BLOCKS if block.startswith("type: workflow_definition"))

    result = run_file("refund.test.yaml", tests, ACTIONS, Options(), lambda path: flow)

    assert result.findings == ()
    assert [(case.name, case.findings, case.plays) for case in result.cases] == [
        ("approved, and paid back at the second attempt", (), 11),
        ("nobody decides", (), 11),
    ]


def test_every_field_is_explained() -> None:
    fields = [name for model in (CaseFile, Given, Reply, Faults, Expected) for name in model.model_fields]

    missing = [name for name in (*fields, *VERBS) if not re.search(rf"`[^`\n]*\b{name}\b[^`\n]*`", GUIDE)]
    assert missing == []
