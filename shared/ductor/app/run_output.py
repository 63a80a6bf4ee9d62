"""What a run gives: its rendered `output`, or by default the outputs of its completed last steps, by ref."""

from __future__ import annotations

from collections.abc import Callable

from ductor.model.definition import Definition
from ductor.model.enums import NodeStatus, RunStatus
from ductor.model.json import JSON
from ductor.model.payload import MAX_OUTPUT_BYTES, NULL, Payload, payload_size
from ductor.model.run import RunState


class OutputTooLargeError(Exception):
    """The outputs of a run's last steps are together more than an output may be."""

    def __init__(self, size: int) -> None:
        super().__init__(
            f"the outputs of the last steps have {size} bytes together, and an output has at most {MAX_OUTPUT_BYTES}; "
            "read each at its node, or give the definition an `output`"
        )


def output_size(definition: Definition, state: RunState) -> int:
    """About how many bytes `run_output` would give, known without reading any of it."""
    if state.output != NULL:
        return payload_size(state.output)
    return sum(map(payload_size, _last_outputs(definition, state).values()))


def run_output(definition: Definition, state: RunState, load: Callable[[Payload], JSON]) -> JSON:
    """The output of a run that has ended; null unless it completed.

    The default is put together when it is asked for, so that it costs nothing where nobody asks: an object with the
    output of each completed step that no edge leaves, in definition order. Raises OutputTooLargeError over 5 MB.
    """
    if state.output != NULL:
        return load(state.output)
    if definition.output is not None or state.status is not RunStatus.COMPLETED:
        return None
    outputs = _last_outputs(definition, state)
    if (size := sum(map(payload_size, outputs.values()))) > MAX_OUTPUT_BYTES:
        raise OutputTooLargeError(size)
    return {ref: load(output) for ref, output in outputs.items()}


def _last_outputs(definition: Definition, state: RunState) -> dict[str, Payload]:
    sources = {edge.source_ref for edge in definition.edges}
    nodes = state.root.nodes
    ends = [step.ref for step in definition.steps if step.ref not in sources and step.ref in nodes]
    return {ref: nodes[ref].output for ref in ends if nodes[ref].status is NodeStatus.COMPLETED}
