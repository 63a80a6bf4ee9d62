"""What a reset may ask for: steps that exist, inputs that can be given, results that mean something in the fork."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from ductor.app.admission import check_size
from ductor.app.refusals import invalid, precondition
from ductor.engine import forking
from ductor.engine.fork_items import depth, scatter_id, top_scatter
from ductor.engine.forking import ForkPlan, Source
from ductor.engine.graph import Graph, GraphNode
from ductor.engine.regions import ROOT
from ductor.model.json import JSON
from ductor.model.payload import BlobRef
from ductor.model.run import RunState

MAX_RESULTS: Final = 20_000
"""Results of steps in items that one fork takes over; each is read and stored once more by the request."""

MAX_LARGE: Final = 500
"""Of these, those that are larger than a row: they are copied one by one, within the time that a request has."""

_PATH: Final = re.compile(r"\d{1,6}(\.\d{1,6}){0,9}", re.ASCII)


def check_overrides(graph: Graph, overrides: Mapping[str, JSON]) -> None:
    """Refuse inputs that no step takes. `charge` inside a scatter stands for all its items, `charge@3` for one."""
    for name, value in overrides.items():
        field = f"input_overrides.{name[:64]}"
        if not forking.overridable(_node(graph, name, field)):
            raise precondition("STEP_TYPE_WRONG", "only action, AI and bridge steps have an input to give", field)
        if not isinstance(value, dict):
            raise invalid("FIELD_INVALID", "the args of an action are an object", field)
        check_size(value, field)


def check_preserved(graph: Graph, state: RunState, preserve: Sequence[str], overrides: Mapping[str, JSON]) -> None:
    """Refuse results that mean nothing in a fork, or that the run itself does not have."""
    for name in preserve:
        node = _node(graph, name, "preserve_outputs")
        if {name, node.ref} & {*overrides}:
            raise invalid("FIELD_INVALID", f"{name} cannot have both another input and its output", "preserve_outputs")
        if not forking.preservable(node):
            message = f"the result of {name} means nothing without the steps that led to it"
            raise precondition("STEP_TYPE_WRONG", message, "preserve_outputs")
        if node.region == ROOT and not forking.completed(state, name):
            raise precondition("NOT_COMPLETED", f"{name} has no result in this run", "preserve_outputs")


def check_items(graph: Graph, source: Source, plan: ForkPlan, preserve: Sequence[str]) -> None:
    """The same for results inside scatters, and that there are not too many of them."""
    known = {**source.in_items, **source.later}
    results = {node for node, (_, end) in known.items() if end.error is None}
    steps = {node.partition("@")[0] for node in results}
    for name in preserve:
        ref, _, path = name.partition("@")
        if graph.by_ref[ref].region == ROOT:
            continue
        if name not in (results if path else steps):
            raise precondition("NOT_COMPLETED", f"{name} has no result in this run", "preserve_outputs")
        top = top_scatter(graph, ref)
        around = scatter_id(graph, name) if path else top
        if top not in plan.nodes and around not in plan.scatters:
            message = f"{around} had not begun by then, or begins anew: its items may be others"
            raise precondition("SCATTER_NOT_KEPT", message, "preserve_outputs")
    kept = [one for scatter in plan.scatters.values() for one in (*scatter.kept.values(), *scatter.adopted.values())]
    large = sum(isinstance(one.output, BlobRef) for one in kept)
    if len(kept) > MAX_RESULTS or large > MAX_LARGE:
        message = (
            f"{len(kept)} results in items would be kept, {large} of them large; at most {MAX_RESULTS} are, "
            f"and {MAX_LARGE} large ones: choose an earlier point"
        )
        raise precondition("TOO_MUCH_TO_KEEP", message, "transition_seq")


def _node(graph: Graph, name: str, field: str) -> GraphNode:
    """The step of a name that may be a step of the run, a step in a scatter, or a node `charge@3` of one item."""
    ref, at, path = name.partition("@")
    node = graph.by_ref.get(ref)
    fits = node is not None and (not at or (_PATH.fullmatch(path) and path.count(".") + 1 == depth(node, graph)))
    if node is None or not fits:
        raise invalid("STEP_UNKNOWN", f"the run has no step {name[:64]}", field)
    return node
