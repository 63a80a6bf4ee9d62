"""What a run gives: its rendered `output`, or by default the outputs of its completed last steps, by ref."""

from __future__ import annotations

from collections.abc import Callable

from ductor.model.definition import Definition
from ductor.model.enums import NodeStatus, RunStatus
from ductor.model.json import JSON
from ductor.model.payload import NULL, Payload
from ductor.model.run import RunState


def run_output(definition: Definition, state: RunState, load: Callable[[Payload], JSON]) -> JSON:
    """The output of a run that has ended; null unless it completed.

    The default is put together when it is asked for, so that it costs nothing where nobody asks: an object with the
    output of each completed step that no edge leaves, in definition order.
    """
    if state.output != NULL:
        return load(state.output)
    if definition.output is not None or state.status is not RunStatus.COMPLETED:
        return None
    sources = {edge.source_ref for edge in definition.edges}
    ends = [step.ref for step in definition.steps if step.ref not in sources]
    nodes = state.root.nodes
    return {ref: load(nodes[ref].output) for ref in ends if ref in nodes and nodes[ref].status is NodeStatus.COMPLETED}
