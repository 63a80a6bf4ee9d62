"""The rules of scatters, gathers and races that need the whole graph: closed bodies, and branches that can lose."""

from __future__ import annotations

from ductor.engine.regions import ROOT, Link, Regions, branch, find_regions, outward
from ductor.model.definition import Step
from ductor.model.enums import StepType
from ductor.steps.spec import arg
from ductor.validation.found import Found
from ductor.validation.view import View

_CODES = {StepType.GATHER: "GATHER_SPEC_INVALID", StepType.RACE: "RACE_SPEC_INVALID"}
_EARLY = ("any", "quorum")


def check_nesting(view: View, order: list[int], found: Found) -> Regions:
    """Report what keeps the graph from being a nest of scatters and gathers. Says nothing of a graph with a cycle."""
    kinds = [step.type if step else None for step in view.steps]
    links = [
        Link(source, view.refs[at.edge.target_ref], at.edge.type)
        for source, edges in enumerate(view.out)
        for at in edges
    ]
    if len(order) < len(kinds):
        return Regions(tuple(ROOT for _ in kinds), {}, {}, ())
    regions = find_regions(kinds, links, order)
    for fault in regions.faults:
        kind = kinds[fault.step]
        code = _CODES.get(kind, "SCATTER_SPEC_INVALID") if kind else "SCATTER_SPEC_INVALID"
        found.fault(view.labels[fault.step], code, fault.message)
    if not regions.faults:
        targets = outward(kinds, links, regions)
        for index, step in enumerate(view.steps):
            if step is not None:
                _check_step(view, regions, targets, index, step, found)
    return regions


def visible(regions: Regions, region: int) -> int:
    """A bit set of the steps that can be read from a region: its own, and those of the regions around it."""
    chain = {ROOT}
    while region != ROOT:
        chain.add(region)
        region = regions.region[region]
    return sum(1 << index for index, own in enumerate(regions.region) if own in chain)


def _check_step(view: View, regions: Regions, targets: list[list[int]], index: int, step: Step, found: Found) -> None:
    early = step.type is StepType.GATHER and str(arg(step, "policy")).lower() in _EARLY
    scatter = regions.scatter_of.get(index)
    if early and scatter is not None:
        other = view.steps[scatter]
        if other is not None and arg(other, "tolerated_failures") not in (None, 0):
            message = (
                f"policy `{arg(step, 'policy')}` says how many may fail; remove tolerated_failures of '{other.ref}'"
            )
            found.fault(f"{step.ref}.args.policy", "GATHER_SPEC_INVALID", message)
    if step.type is StepType.DIGEST and regions.region[index] != ROOT:
        message = "a digest merges whole runs, so it cannot stand between a scatter and its gather; put it outside"
        found.fault(step.ref, "DIGEST_SPEC_INVALID", message)
    if step.type is StepType.RACE or (early and scatter is None):
        _check_branches(view, regions, targets, index, step, found)


def _check_branches(
    view: View, regions: Regions, targets: list[list[int]], index: int, step: Step, found: Found
) -> None:
    for source in sorted({view.refs[at.edge.source_ref] for at in view.into[index]}):
        if not branch(regions.region, targets, source, index):
            message = (
                f"the branch that ends with '{view.labels[source]}' is empty: that step also leads elsewhere, so"
                " nothing can be cancelled when the branch loses; put a step of its own before the join"
            )
            found.fault(step.ref, _CODES[step.type], message)
