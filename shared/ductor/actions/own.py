"""`ductor.trigger` and `ductor.publish_event`: what a run asks of its own installation. Who does it is injected."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Final, Protocol, Self

from pydantic import BaseModel, Field, model_validator

from ductor.actions.action import Action
from ductor.actions.context import ActionContext
from ductor.actions.errors import ActionError
from ductor.model.json import JSON

TRIGGER: Final = "ductor.trigger"
PUBLISH_EVENT: Final = "ductor.publish_event"
_TIMEOUT_MS: Final = 30_000

LabelKey = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,62}$")]
LabelId = Annotated[str, Field(min_length=1, max_length=256)]


class TriggerArgs(BaseModel):
    """What `ductor.trigger` takes: a family, whose newest version in the run's environment starts, or one version."""

    family_slug: str = Field(default="", max_length=200, description="Its newest published version is started.")
    definition_id: str = Field(default="", max_length=64, description="A published version.")
    input: JSON = Field(default={}, description="TRIGGER.payload of the run: any JSON.")
    subject_type: str = Field(default="", max_length=256)
    subject_id: str = Field(default="", max_length=256)
    correlation_labels: dict[LabelKey, LabelId] = Field(
        default={}, max_length=10, description="Beside those of this run, which the new one gets too."
    )
    variables: dict[str, JSON] = Field(default={}, description="Those that the definition allows to be overridden.")

    @model_validator(mode="after")
    def _one_of_two(self) -> Self:
        if bool(self.family_slug) == bool(self.definition_id):
            raise ValueError("give family_slug or definition_id, one of the two")
        return self


class PublishArgs(BaseModel):
    """What `ductor.publish_event` takes."""

    event_name: str = Field(min_length=1, max_length=200)
    correlation_key: str = Field(default="", max_length=1_024, description="What waiting steps are found by.")
    payload: JSON = Field(default=None, description="Any JSON of at most 256 KB.")
    event_id: str = Field(default="", max_length=256, description="A repetition has the same; by default of the step.")


class Installation(Protocol):
    """Starts runs and delivers events of the tenant of a running step (`app.own_actions`)."""

    def trigger(self, args: TriggerArgs, ctx: ActionContext) -> dict[str, JSON]:
        """`{run_id, status, definition_id}`. Raises ActionError, UnavailableError."""
        ...

    def publish(self, args: PublishArgs, ctx: ActionContext) -> dict[str, JSON]:
        """`{event_id, matched, started_runs, refused_starts}`. Raises ActionError, UnavailableError."""
        ...


class Nobody:
    """Where nothing runs: definitions are checked here, no step is executed."""

    def trigger(self, args: TriggerArgs, ctx: ActionContext) -> dict[str, JSON]:
        """Raises ActionError `ACTION_UNAVAILABLE`."""
        raise _unavailable(TRIGGER)

    def publish(self, args: PublishArgs, ctx: ActionContext) -> dict[str, JSON]:
        """Raises ActionError `ACTION_UNAVAILABLE`."""
        raise _unavailable(PUBLISH_EVENT)


def actions(installation: Installation) -> tuple[Action, ...]:
    """Both, done by `installation`."""
    return (
        _action(TRIGGER, installation.trigger, TriggerArgs, "Starts a run of another definition and goes on."),
        _action(PUBLISH_EVENT, installation.publish, PublishArgs, "Publishes an event to waiting runs and triggers."),
    )


def _action(name: str, function: Callable[..., dict[str, JSON]], model: type[BaseModel], description: str) -> Action:
    return Action(name=name, function=function, args_model=model, timeout_ms=_TIMEOUT_MS, description=description)


def _unavailable(name: str) -> ActionError:
    return ActionError("ACTION_UNAVAILABLE", f"{name} runs in a worker of an installation only", retryable=False)
