"""Flowcharts of definitions."""

from __future__ import annotations

from pathlib import Path

import pytest

from ductor.cli.failure import Failure
from ductor.cli.mermaid import flowchart, run


def test_a_node_per_step_and_a_labelled_edge() -> None:
    document = {
        "steps": [
            {"ref": "big", "type": "condition", "title": "Over?"},
            {"ref": "pay", "type": "STEP_TYPE_ACTION", "action": "core.echo"},
        ],
        "edges": [{"source_ref": "big", "target_ref": "pay", "type": "true", "condition": "TRIGGER.payload.n > 1"}],
    }
    assert list(flowchart(document)) == [
        "flowchart TD",
        '    s0{"Over#63;<br/><small>condition</small>"}',
        '    s1["pay<br/><small>core.echo</small>"]',
        '    s0 -->|"true: TRIGGER.payload.n #62; 1"| s1',
    ]


def test_success_needs_no_label_and_failures_are_dotted() -> None:
    steps = [{"ref": ref, "type": "action"} for ref in "abc"]
    edges = [{"source_ref": "a", "target_ref": "b"}, {"source_ref": "a", "target_ref": "c", "type": "EDGE_TYPE_ERROR"}]
    assert list(flowchart({"steps": steps, "edges": edges}))[-2:] == ["    s0 --> s1", '    s0 -.->|"error"| s2']


def test_no_text_can_break_out_of_its_label() -> None:
    lines = list(flowchart({"steps": [{"ref": "a", "type": "wait", "title": '"]; click a "javascript:x" <b>'}]}))
    label = lines[1].removeprefix('    s0(["').removesuffix('"])')
    assert '"' not in label
    assert "<b>" not in label


@pytest.mark.parametrize("text", ["a: 1\n", "steps: []\n", "steps: 5\n"])
def test_a_file_that_is_no_definition_is_no_empty_chart(tmp_path: Path, text: str) -> None:
    path = tmp_path / "odd.yaml"
    path.write_text(text)
    with pytest.raises(Failure, match="has no steps to draw"):
        run(str(path))
