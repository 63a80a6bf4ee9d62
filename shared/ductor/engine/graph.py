"""A published definition compiled once for ticking: adjacency, join counts and compiled expressions, immutable."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ductor.engine.behaviour import Behaviour
from ductor.engine.regions import ROOT, Link, Regions, branch, enters, find_regions, outward
from ductor.expressions import Program, Template, compile_cel, compile_template
from ductor.model.definition import Definition, Step
from ductor.model.enums import EdgeType, StepType
from ductor.model.slots import concurrency_of


@dataclass(frozen=True, slots=True)
class GraphEdge:
    """An outgoing edge; `index` is its place among its source's outgoing edges, `target` a node index."""

    index: int
    target: int
    type: EdgeType
    condition: Program | None


@dataclass(frozen=True, slots=True)
class GraphNode:
    """A step in the graph. `args` is what its behaviour made of the step's args.

    `region` is the index of the innermost scatter around it, ROOT = none. `out` are the edges that its end resolves in
    its own scope; a scatter has its edges into the body in `entries` instead, and a last edge in `out` to its gather.
    `indegree` counts edges, for a node that decides early (`needs`) the steps they come from: it is decided as soon as
    `needs` of them are taken, or cannot be any more. `collects`: it wants to know which edges were taken, of
    those from `sources`. `branches` are, per such step, the steps that lose with it; `contained`: the step is in such
    a branch, so that its failure is the join's to judge. `reads_itself`: an effect or condition of its end does.
    """

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
    region: int = ROOT
    entries: tuple[GraphEdge, ...] = ()
    gather: int = ROOT
    scatter: int = ROOT
    collects: bool = False
    needs: int = 0
    sources: tuple[int, ...] = ()
    branches: tuple[tuple[int, frozenset[int]], ...] = ()
    contained: bool = False
    reads_itself: bool = False


@dataclass(frozen=True, slots=True)
class Graph:
    """The compiled definition. `nodes` are in definition order, which breaks ties everywhere.

    `roots` start with the run. `bodies` are the nodes of each region, by scatter; under ROOT those of the run itself,
    `size` of them. `speaks`: some type has registrations or commands of its own. `concurrency` is the key of its rule.
    """

    definition: Definition
    nodes: tuple[GraphNode, ...]
    by_ref: Mapping[str, GraphNode]
    roots: tuple[int, ...]
    output: Template | None
    bodies: Mapping[int, tuple[int, ...]]
    size: int
    speaks: bool
    concurrency: Program | None = None


def compile_graph(definition: Definition, behaviours: Mapping[StepType, Behaviour]) -> Graph:
    """Compile. Raises ExpressionSyntaxError, KeyError or ValueError for a definition that validation would refuse."""
    args = [behaviours[step.type].compile(step) for step in definition.steps]
    shape = _Shape(definition)
    shape.guard([behaviours[step.type].needs(own) for step, own in zip(definition.steps, args, strict=True)])
    reached: dict[str, list[str]] = {}
    for checkpoint in definition.checkpoints:
        reached.setdefault(checkpoint.step_ref, []).append(checkpoint.name)
    nodes = tuple(
        _node(shape, index, behaviours[step.type], args[index], tuple(reached.get(step.ref, ())))
        for index, step in enumerate(definition.steps)
    )
    bodies: dict[int, list[int]] = {ROOT: []}
    for index, region in enumerate(shape.regions.region):
        bodies.setdefault(region, []).append(index)
    return Graph(
        definition=definition,
        nodes=nodes,
        by_ref={node.ref: node for node in nodes},
        roots=tuple(index for index in bodies[ROOT] if nodes[index].indegree == 0),
        output=None if definition.output is None else compile_template(definition.output),
        bodies={region: tuple(body) for region, body in bodies.items()},
        size=len(bodies[ROOT]),
        speaks=any(node.behaviour.speaks for node in nodes),
        concurrency=None if (rule := concurrency_of(definition)) is None else compile_cel(rule.key),
    )


class _Shape:
    """The edges of a definition, sorted into scopes."""

    def __init__(self, definition: Definition) -> None:
        self.steps = definition.steps
        position = {step.ref: index for index, step in enumerate(definition.steps)}
        kinds = [step.type for step in definition.steps]
        links = [Link(position[edge.source_ref], position[edge.target_ref], edge.type) for edge in definition.edges]
        self.regions: Regions = find_regions(kinds, links, _order(len(kinds), links))
        if self.regions.faults:
            fault = self.regions.faults[0]
            raise ValueError(f"{definition.steps[fault.step].ref}: {fault.message}")
        self.out: list[list[GraphEdge]] = [[] for _ in kinds]
        self.entries: list[list[GraphEdge]] = [[] for _ in kinds]
        self.indegree = [0] * len(kinds)
        self.sources: list[set[int]] = [set() for _ in kinds]
        region = self.regions.region
        for link, edge in zip(links, definition.edges, strict=True):
            inner = enters(kinds[link.source], link.type)
            own = (self.entries if inner else self.out)[link.source]
            own.append(GraphEdge(len(own), link.target, link.type, _program(edge.condition)))
            if inner or region[link.source] == region[link.target]:
                self.indegree[link.target] += 1
                self.sources[link.target].add(link.source)
        for scatter, gather in self.regions.gather_of.items():
            self.out[scatter].append(GraphEdge(len(self.out[scatter]), gather, EdgeType.SUCCESS, None))
            self.indegree[gather] += 1
            self.sources[gather].add(scatter)
        self.outward = outward(kinds, links, self.regions)
        self.needs: list[int] = []
        self.branches: list[tuple[tuple[int, frozenset[int]], ...]] = []
        self.contained: set[int] = set()

    def guard(self, needs: list[int]) -> None:
        """Find the branches of the nodes that decide early; the closing gather of a scatter is not one of them."""
        self.needs = [0 if index in self.regions.scatter_of else count for index, count in enumerate(needs)]
        for join, count in enumerate(self.needs):
            sources = sorted(self.sources[join]) if count else ()
            own = tuple((source, branch(self.regions.region, self.outward, source, join)) for source in sources)
            self.branches.append(own)
            for _, steps in own:
                self.contained |= steps


def _order(count: int, links: list[Link]) -> list[int]:
    """Topological. Raises ValueError for a cycle."""
    waiting = [0] * count
    out: list[list[int]] = [[] for _ in range(count)]
    for link in links:
        waiting[link.target] += 1
        out[link.source].append(link.target)
    order = [index for index in range(count) if not waiting[index]]
    for index in order:
        for target in out[index]:
            waiting[target] -= 1
            if not waiting[target]:
                order.append(target)
    if len(order) < count:
        raise ValueError("the steps wait for each other")
    return order


def _node(shape: _Shape, index: int, behaviour: Behaviour, args: Any, checkpoints: tuple[str, ...]) -> GraphNode:
    step = shape.steps[index]
    effects = step.effects
    needs = shape.needs[index]
    context, visibility = (_programs(effects.context), _programs(effects.visibility)) if effects else ((), ())
    conditions = [edge.condition for edge in shape.out[index] if edge.condition is not None]
    own = (*conditions, *(program for _, program in (*context, *visibility)))
    return GraphNode(
        index=index,
        ref=step.ref,
        step=step,
        behaviour=behaviour,
        args=args,
        condition=_program(step.condition),
        context_effects=context,
        visibility_effects=visibility,
        out=tuple(shape.out[index]),
        indegree=len(shape.sources[index]) if needs else shape.indegree[index],
        checkpoints=checkpoints,
        region=shape.regions.region[index],
        entries=tuple(shape.entries[index]),
        gather=shape.regions.gather_of.get(index, ROOT),
        scatter=shape.regions.scatter_of.get(index, ROOT),
        collects=step.type in _COLLECT,
        needs=needs,
        sources=tuple(sorted(shape.sources[index])) if step.type in _COLLECT else (),
        branches=shape.branches[index],
        contained=index in shape.contained,
        reads_itself=any(program.reads.all_steps or step.ref in program.reads.steps for program in own),
    )


_COLLECT = frozenset({StepType.GATHER, StepType.RACE})


def _program(source: str) -> Program | None:
    return compile_cel(source) if source else None


def _programs(sources: Mapping[str, str]) -> tuple[tuple[str, Program], ...]:
    return tuple((key, compile_cel(source)) for key, source in sources.items())
