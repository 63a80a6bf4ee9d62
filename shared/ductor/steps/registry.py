"""Every step type of this release in one table. Adding a type is one module and one entry here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ductor.model.enums import StepType
from ductor.steps import (
    action,
    ai_action,
    ai_agent,
    approval,
    bridge,
    condition,
    dataflow,
    digest,
    event_set,
    gather,
    race,
    scatter,
    subworkflow,
    wait,
    wait_event,
)
from ductor.steps.spec import StepSpec

_SPECS: Final = (
    StepSpec(
        StepType.ACTION, action.EDGES, None, action.parse_args, action.validate, action.expressions, executable=True
    ),
    StepSpec(
        StepType.DATAFLOW,
        dataflow.EDGES,
        dataflow.Args,
        dataflow.parse_args,
        dataflow.validate,
        dataflow.expressions,
        executable=True,
    ),
    StepSpec(
        StepType.CONDITION,
        condition.EDGES,
        condition.Args,
        condition.parse_args,
        condition.validate,
        condition.expressions,
        executable=True,
    ),
    StepSpec(StepType.WAIT, wait.EDGES, wait.Args, wait.parse_args, wait.validate, wait.expressions, executable=True),
    StepSpec(
        StepType.WAIT_EVENT,
        wait_event.EDGES,
        wait_event.Args,
        wait_event.parse_args,
        wait_event.validate,
        wait_event.expressions,
        executable=True,
    ),
    StepSpec(
        StepType.EVENT_SET,
        event_set.EDGES,
        event_set.Args,
        event_set.parse_args,
        event_set.validate,
        event_set.expressions,
        executable=True,
    ),
    StepSpec(
        StepType.DIGEST,
        digest.EDGES,
        digest.Args,
        digest.parse_args,
        digest.validate,
        digest.expressions,
        executable=True,
    ),
    StepSpec(
        StepType.APPROVAL,
        approval.EDGES,
        approval.Args,
        approval.parse_args,
        approval.validate,
        approval.expressions,
        executable=True,
    ),
    StepSpec(
        StepType.SCATTER,
        scatter.EDGES,
        scatter.Args,
        scatter.parse_args,
        scatter.validate,
        scatter.expressions,
        executable=True,
    ),
    StepSpec(
        StepType.GATHER,
        gather.EDGES,
        gather.Args,
        gather.parse_args,
        gather.validate,
        gather.expressions,
        executable=True,
    ),
    StepSpec(StepType.RACE, race.EDGES, race.Args, race.parse_args, race.validate, race.expressions, executable=True),
    StepSpec(
        StepType.SUBWORKFLOW,
        subworkflow.EDGES,
        subworkflow.Args,
        subworkflow.parse_args,
        subworkflow.validate,
        subworkflow.expressions,
        executable=True,
    ),
    StepSpec(
        StepType.AI_ACTION,
        ai_action.EDGES,
        ai_action.Args,
        ai_action.parse_args,
        ai_action.validate,
        ai_action.expressions,
        executable=True,
    ),
    StepSpec(
        StepType.AI_AGENT,
        ai_agent.EDGES,
        ai_agent.Args,
        ai_agent.parse_args,
        ai_agent.validate,
        ai_agent.expressions,
        executable=True,
    ),
    StepSpec(
        StepType.BRIDGE,
        bridge.EDGES,
        bridge.Args,
        bridge.parse_args,
        bridge.validate,
        bridge.expressions,
        executable=True,
    ),
)

STEP_SPECS: Final[Mapping[StepType, StepSpec]] = {spec.type: spec for spec in _SPECS}
