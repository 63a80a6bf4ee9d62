"""A published definition compiled once for ticking: adjacency, join counts and compiled expressions, immutable."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ductor.engine.behaviour import Behaviour
from ductor.expressions import Program, Template, compile_cel, compile_template
from ductor.model.definition import Definition, Step
from ductor.model.enums import EdgeType, StepType


@dataclass(frozen=True, slots=True)
class GraphEdge:
    """An outgoing edge; `index` is its place among its source's outgoing edges, `target` a node index."""

    index: int
    target: int
    type: EdgeType
    condition: Program | None


@dataclass(frozen=True, slots=True)
class GraphNode:
    """A step in the graph. `args` is what its behaviour made of the step's args."""

    index: int
    ref: str
    step: Step
    behaviour: Behaviour
    args: Any
    condition: Program | None
    context_effects: tuple[tuple[str, Program], ...]
    visibility_effects: tuple[tuple[str, Program], ...]
    out: tuple[GraphEdge, ...]
    indegree: int
    checkpoints: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Graph:
    """The compiled definition. `nodes` are in definition order, which breaks ties everywhere."""

    definition: Definition
    nodes: tuple[GraphNode, ...]
    by_ref: Mapping[str, GraphNode]
    roots: tuple[int, ...]
    output: Template | None


def compile_graph(definition: Definition, behaviours: Mapping[StepType, Behaviour]) -> Graph:
    """Compile. Raises ExpressionSyntaxError, KeyError or ValueError for a definition that validation would refuse."""
    position = {step.ref: index for index, step in enumerate(definition.steps)}
    out: list[list[GraphEdge]] = [[] for _ in definition.steps]
    indegree = [0] * len(definition.steps)
    for edge in definition.edges:
        own = out[position[edge.source_ref]]
        target = position[edge.target_ref]
        own.append(GraphEdge(len(own), target, edge.type, _program(edge.condition)))
        indegree[target] += 1
    reached: dict[str, list[str]] = {}
    for checkpoint in definition.checkpoints:
        reached.setdefault(checkpoint.step_ref, []).append(checkpoint.name)
    nodes = tuple(
        _node(index, step, behaviours[step.type], tuple(out[index]), indegree[index], tuple(reached.get(step.ref, ())))
        for index, step in enumerate(definition.steps)
    )
    return Graph(
        definition=definition,
        nodes=nodes,
        by_ref={node.ref: node for node in nodes},
        roots=tuple(index for index, count in enumerate(indegree) if count == 0),
        output=None if definition.output is None else compile_template(definition.output),
    )


def _node(
    index: int,
    step: Step,
    behaviour: Behaviour,
    out: tuple[GraphEdge, ...],
    indegree: int,
    checkpoints: tuple[str, ...],
) -> GraphNode:
    effects = step.effects
    return GraphNode(
        index=index,
        ref=step.ref,
        step=step,
        behaviour=behaviour,
        args=behaviour.compile(step),
        condition=_program(step.condition),
        context_effects=_programs(effects.context if effects else {}),
        visibility_effects=_programs(effects.visibility if effects else {}),
        out=out,
        indegree=indegree,
        checkpoints=checkpoints,
    )


def _program(source: str) -> Program | None:
    return compile_cel(source) if source else None


def _programs(sources: Mapping[str, str]) -> tuple[tuple[str, Program], ...]:
    return tuple((key, compile_cel(source)) for key, source in sources.items())
