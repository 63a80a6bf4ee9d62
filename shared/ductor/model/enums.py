"""Closed vocabularies. Inside they are enums; the API answers with the long spelling (`STEP_TYPE_ACTION`)."""

from __future__ import annotations

from abc import abstractmethod
from enum import StrEnum
from typing import Self


class WireEnum(StrEnum):
    """An enum whose wire form is `<PREFIX>_<NAME>` and that reads both spellings, in any case."""

    @classmethod
    @abstractmethod
    def prefix(cls) -> str:
        """The part of the wire form before the member's name."""

    @property
    def wire(self) -> str:
        return f"{self.prefix()}_{self.name}"

    @classmethod
    def parse(cls, text: str) -> Self | None:
        """The member for `action`, `ACTION` or `STEP_TYPE_ACTION`; None when there is none."""
        name = text.upper().removeprefix(f"{cls.prefix()}_")
        return cls.__members__.get(name)


class StepType(WireEnum):
    """The fifteen step types."""

    ACTION = "action"
    DATAFLOW = "dataflow"
    CONDITION = "condition"
    WAIT = "wait"
    WAIT_EVENT = "wait_event"
    EVENT_SET = "event_set"
    DIGEST = "digest"
    APPROVAL = "approval"
    SCATTER = "scatter"
    GATHER = "gather"
    RACE = "race"
    SUBWORKFLOW = "subworkflow"
    AI_ACTION = "ai_action"
    AI_AGENT = "ai_agent"
    BRIDGE = "bridge"

    @classmethod
    def prefix(cls) -> str:
        return "STEP_TYPE"


class EdgeType(WireEnum):
    """When an edge is taken, by the outcome of its source."""

    SUCCESS = "success"
    ERROR = "error"
    TIMEOUT = "timeout"
    TRUE = "true"
    FALSE = "false"
    APPROVED = "approved"
    REJECTED = "rejected"
    DONE = "done"
    DEFAULT = "default"

    @classmethod
    def prefix(cls) -> str:
        return "EDGE_TYPE"


class DefinitionStatus(WireEnum):
    """The life of a definition row."""

    DRAFT = "draft"
    PUBLISHED = "published"
    ARCHIVED = "archived"

    @classmethod
    def prefix(cls) -> str:
        return "DEFINITION_STATUS"


class RunStatus(StrEnum):
    """The states of a run; the wire form is the value."""

    PENDING = "pending"
    RUNNING = "running"
    WAITING = "waiting"
    PAUSED = "paused"
    CANCELLING = "cancelling"
    COMPLETED = "completed"
    FAILED = "failed"
    TIMED_OUT = "timed_out"
    CANCELLED = "cancelled"
    TERMINATED = "terminated"
    CONTINUED_AS_NEW = "continued_as_new"
    MERGED = "merged"

    @property
    def terminal(self) -> bool:
        return self in _TERMINAL_RUN


_TERMINAL_RUN = frozenset(
    {
        RunStatus.COMPLETED,
        RunStatus.FAILED,
        RunStatus.TIMED_OUT,
        RunStatus.CANCELLED,
        RunStatus.TERMINATED,
        RunStatus.CONTINUED_AS_NEW,
        RunStatus.MERGED,
    }
)


class NodeStatus(StrEnum):
    """The states of a node; the wire form is the value."""

    PENDING = "pending"
    SCHEDULED = "scheduled"
    RUNNING = "running"
    WAITING = "waiting"
    RETRYING = "retrying"
    PAUSED = "paused"
    COMPLETED = "completed"
    FAILED = "failed"
    TIMED_OUT = "timed_out"
    SKIPPED = "skipped"
    CANCELLED = "cancelled"

    @property
    def ended(self) -> bool:
        return self in _ENDED_NODE


_ENDED_NODE = frozenset(
    {NodeStatus.COMPLETED, NodeStatus.FAILED, NodeStatus.TIMED_OUT, NodeStatus.SKIPPED, NodeStatus.CANCELLED}
)


class OnError(StrEnum):
    """What a step's final failure does to the run when no edge handles it."""

    FAIL = "fail"
    CONTINUE = "continue"


class Join(StrEnum):
    """How many taken incoming edges a node needs once all of them are resolved."""

    ANY = "any"
    ALL = "all"


class RedactionPolicy(StrEnum):
    """How a step's values show to people. It never changes what flows inside."""

    HASHED = "hashed"
    NONE = "none"
    OMIT = "omit"
