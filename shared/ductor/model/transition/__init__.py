"""What happened to a run, in past tense: the history. Folding it from the first header gives the stored state.

The modules hold the transitions by what they are about; who reads or makes them takes all from here.
"""

from __future__ import annotations

from ductor.model.transition.arrivals import EventConsumed, SignalKept, SignalTaken
from ductor.model.transition.items import (
    GatherCollected,
    ItemEnded,
    ItemsStarted,
    PageClosed,
    PageLooked,
    PageOpened,
    ScatterOpened,
    ScatterReopened,
)
from ductor.model.transition.lineage import ChildEnded, DutyDone, IntentForwarded, LinkedPlanned, SuccessorPlanned
from ductor.model.transition.node import (
    AttemptAbandoned,
    LateEffect,
    NodeAdopted,
    NodeCancelled,
    NodeChecked,
    NodeCompleted,
    NodeFailed,
    NodeHeld,
    NodeOverdue,
    NodeParked,
    NodeReleased,
    NodeReset,
    NodeRested,
    NodeRetrying,
    NodeScheduled,
    NodeSkipped,
    NodeTuned,
    NodeWatched,
)
from ductor.model.transition.run import (
    CheckpointReached,
    Kept,
    KeptItems,
    OperatorAudited,
    RunEnded,
    RunEnding,
    RunForked,
    RunPaused,
    RunRedriven,
    RunResumed,
    RunStarted,
    WakeArmed,
)
from ductor.model.transition.slots import SlotAsked, SlotChecked, SlotGranted, SlotLeft

Transition = (
    RunStarted
    | RunForked
    | RunPaused
    | RunResumed
    | RunRedriven
    | RunEnding
    | RunEnded
    | NodeScheduled
    | NodeParked
    | NodeRetrying
    | NodeCompleted
    | NodeFailed
    | NodeSkipped
    | NodeCancelled
    | NodeChecked
    | NodeWatched
    | NodeOverdue
    | AttemptAbandoned
    | NodeHeld
    | NodeRested
    | NodeAdopted
    | NodeReleased
    | NodeReset
    | NodeTuned
    | ScatterOpened
    | ScatterReopened
    | PageOpened
    | ItemsStarted
    | ItemEnded
    | PageClosed
    | PageLooked
    | GatherCollected
    | EventConsumed
    | SignalKept
    | SignalTaken
    | CheckpointReached
    | SlotAsked
    | SlotGranted
    | SlotLeft
    | SlotChecked
    | WakeArmed
    | OperatorAudited
    | ChildEnded
    | LinkedPlanned
    | SuccessorPlanned
    | IntentForwarded
    | DutyDone
    | LateEffect
)

__all__ = [
    "AttemptAbandoned",
    "CheckpointReached",
    "ChildEnded",
    "DutyDone",
    "EventConsumed",
    "GatherCollected",
    "IntentForwarded",
    "ItemEnded",
    "ItemsStarted",
    "Kept",
    "KeptItems",
    "LateEffect",
    "LinkedPlanned",
    "NodeAdopted",
    "NodeCancelled",
    "NodeChecked",
    "NodeCompleted",
    "NodeFailed",
    "NodeHeld",
    "NodeOverdue",
    "NodeParked",
    "NodeReleased",
    "NodeReset",
    "NodeRested",
    "NodeRetrying",
    "NodeScheduled",
    "NodeSkipped",
    "NodeTuned",
    "NodeWatched",
    "OperatorAudited",
    "PageClosed",
    "PageLooked",
    "PageOpened",
    "RunEnded",
    "RunEnding",
    "RunForked",
    "RunPaused",
    "RunRedriven",
    "RunResumed",
    "RunStarted",
    "ScatterOpened",
    "ScatterReopened",
    "SignalKept",
    "SignalTaken",
    "SlotAsked",
    "SlotChecked",
    "SlotGranted",
    "SlotLeft",
    "SuccessorPlanned",
    "Transition",
    "WakeArmed",
]
