"""How each executable step type acts: the registry that the engine is given. Types that are missing cannot run yet."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ductor.engine.behaviour import Behaviour
from ductor.model.enums import StepType
from ductor.steps.action import ActionBehaviour
from ductor.steps.ai_action import AiBehaviour
from ductor.steps.approval import ApprovalBehaviour
from ductor.steps.bridge import BridgeBehaviour
from ductor.steps.condition import ConditionBehaviour
from ductor.steps.digest import DigestBehaviour
from ductor.steps.event_set import EventSetBehaviour
from ductor.steps.gather import GatherBehaviour
from ductor.steps.race import RaceBehaviour
from ductor.steps.scatter import ScatterBehaviour
from ductor.steps.shaping import DataflowBehaviour
from ductor.steps.subworkflow import SubworkflowBehaviour
from ductor.steps.wait import WaitBehaviour
from ductor.steps.wait_event import WaitEventBehaviour

BEHAVIOURS: Final[Mapping[StepType, Behaviour]] = {
    StepType.ACTION: ActionBehaviour(),
    StepType.AI_ACTION: AiBehaviour(),
    StepType.AI_AGENT: AiBehaviour(),
    StepType.DATAFLOW: DataflowBehaviour(),
    StepType.CONDITION: ConditionBehaviour(),
    StepType.WAIT: WaitBehaviour(),
    StepType.APPROVAL: ApprovalBehaviour(),
    StepType.SCATTER: ScatterBehaviour(),
    StepType.GATHER: GatherBehaviour(),
    StepType.RACE: RaceBehaviour(),
    StepType.WAIT_EVENT: WaitEventBehaviour(),
    StepType.EVENT_SET: EventSetBehaviour(),
    StepType.DIGEST: DigestBehaviour(),
    StepType.SUBWORKFLOW: SubworkflowBehaviour(),
    StepType.BRIDGE: BridgeBehaviour(),
}
