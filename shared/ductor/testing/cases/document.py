"""The test file as a typed document: what is given, what happens then, what must come of it. Reads no files."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from ductor.app.schedule_rows import Decided
from ductor.model.enums import NodeStatus
from ductor.model.json import JSON
from ductor.testing.cases.expected import Expected
from ductor.testing.cases.forms import Duration, Instant, Part, Templated, short, single

FILE_TYPE: Final = "workflow_test"
OF_A_TRIGGER: Final = ("input", "variables", "subject", "labels")
RUN_CONTROLS: Final = ("pause", "resume", "cancel", "terminate", "redrive")
MAX_CASES: Final = 500
MAX_SEEDS: Final = 10_000

Name = Annotated[str, Field(min_length=1, max_length=200)]
RunControl = Literal["pause", "resume", "cancel", "terminate", "redrive"]


class Failing(Part):
    """The error of a mocked attempt. With `retryable: false` the step's retries are not used."""

    code: Annotated[str, Field(min_length=1, max_length=128)]
    message: str = "failed by the test"
    retryable: bool = True
    details: JSON = None


class Reply(Part):
    """What a mocked action does: it returns `output` (default `{}`), or fails with `error`, after `delay`.

    `output` may hold `${{ }}` templates that read INPUT (the rendered args), INDEX (how often the mock was asked
    before) and TRIGGER.payload (the input of the run).
    """

    output: Templated = None
    error: Annotated[Failing | None, short("code", Failing)] = None
    delay: Duration = "0s"

    @model_validator(mode="after")
    def _one_end(self) -> Self:
        if self.error is not None and self.gives("output"):
            raise ValueError("give `output` or `error`, not both")
        if self.error is None and self.gives("output") and not isinstance(self.output, dict | str):
            raise ValueError("`output` must be an object: that is what actions return")
        return self


Mock = Annotated[list[Reply], Field(min_length=1), single(Reply)]
"""Replies in the order of the calls; the last one repeats."""


class Subject(Part):
    """What the run is about."""

    type: Name
    id: Name


class Given(Part):
    """The world before the run.

    `steps` mocks by the ref of a step (`charge`, in a scatter also one item: `charge@2`; of another workflow:
    `family/charge`; of a compensation: `undo-charge`), `actions` by the name of an action, `workflows` whole child
    workflows by family. A step's own mock goes first. `variables` are those of the trigger, `environment` those of
    the environment. `connections` maps slugs to types; connections that steps name are there anyway. With
    `scheduled_at` nobody triggers the run: it is the one that the workflow's schedule starts at this instant.
    """

    scheduled_at: Instant | None = None
    input: JSON = Field(default_factory=dict)
    variables: dict[str, JSON] = Field(default_factory=dict)
    environment: dict[str, JSON] = Field(default_factory=dict)
    subject: Subject | None = None
    labels: dict[str, str] = Field(default_factory=dict)
    connections: dict[str, str] = Field(default_factory=dict)
    now: Instant = "2026-01-01T00:00:00Z"
    steps: dict[str, Mock] = Field(default_factory=dict)
    actions: dict[str, Mock] = Field(default_factory=dict)
    workflows: dict[str, Mock] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _nobody_triggers(self) -> Self:
        told = [name for name in OF_A_TRIGGER if self.gives(name)]
        if self.scheduled_at is not None and told:
            raise ValueError(f"a scheduled run has what its schedule gives it: leave {', '.join(told)} out")
        return self

    def over(self, base: Given) -> Given:
        """This one on top of `base`: maps are merged by key, everything else is replaced where it is given."""
        merged: dict[str, Any] = {}
        for field in type(self).model_fields:
            own, below = getattr(self, field), getattr(base, field)
            mapped = field != "input" and isinstance(own, dict)
            merged[field] = {**below, **own} if mapped else own if self.gives(field) else below
        return type(self).model_construct(**merged)


class Person(Part):
    """Who decides: the roles and the user of the API key. Left out: somebody of the audience."""

    roles: list[Name] = Field(default_factory=list)
    user: str = ""


class Decision(Part):
    """An approval or a rejection. The clock is skipped until the step waits."""

    step: Name
    payload: JSON = None
    comment: str | None = None
    approver_id: str | None = None
    by: Person | None = None


class GivenError(Part):
    """The error that a step is resolved with."""

    code: str
    message: str = ""


class Resolution(Part):
    """A waiting step is ended by hand, with `payload` as its output or with an error."""

    step: Name
    payload: JSON = None
    error: GivenError | None = None


class Published(Part):
    """An event. `matched`: how many waiting steps it must resolve. Without an `id` each has one of its own.

    `starts` names the runs that its triggers must start, in the order of their admission.
    """

    event: Name
    key: str = ""
    payload: JSON = Field(default_factory=dict)
    id: str | None = None
    matched: int | None = Field(default=None, ge=0)
    starts: list[Name] | None = None


class Sent(Part):
    """A signal to the run."""

    name: Name
    payload: JSON = None


class Reached(Part):
    """Skip the clock until a step is there: waiting, or in the state that is named."""

    step: Name
    status: NodeStatus | None = Field(default=None, strict=False)


class Started(Part):
    """One more run, which later moments call by the name `as`. `workflow`: its family, default the one under test."""

    name: Name = Field(alias="as")
    workflow: str = ""
    input: JSON = Field(default_factory=dict)
    variables: dict[str, JSON] = Field(default_factory=dict)
    subject: Subject | None = None
    labels: dict[str, str] = Field(default_factory=dict)


class GoneOn(Part):
    """The run goes on as a new one, which later moments call by the name `as`."""

    name: Name = Field(alias="as")
    context: dict[str, JSON] = Field(default_factory=dict)
    discard_pending: bool = False


class Fired(Part):
    """The clock goes on to an instant of a schedule, and what is due on the way is fired in time.

    `workflow` is its family, default the one under test. A run that it started is called by the name `as`.
    """

    at: Instant
    name: Name | None = Field(alias="as", default=None)
    workflow: str = ""
    outcome: Decided = Field(default=Decided.FIRED, strict=False)

    @model_validator(mode="after")
    def _only_a_run_has_a_name(self) -> Self:
        if self.name is not None and self.outcome is not Decided.FIRED:
            raise ValueError(f"an occurrence that is {self.outcome.value} starts no run: leave `as` out")
        return self


class Forked(Part):
    """A reset of the run: a new one, called by the name `as`, from a point of its history on.

    `after` a step ended, or `before` it began; without both from the beginning. `input` gives steps other args, of the
    steps in `preserve` later results are taken over.
    """

    name: Name = Field(alias="as")
    after: Name | None = None
    before: Name | None = None
    input: dict[str, JSON] = Field(default_factory=dict)
    preserve: list[Name] = Field(default_factory=list)

    @model_validator(mode="after")
    def _one_point(self) -> Self:
        if self.after is not None and self.before is not None:
            raise ValueError("give `after` or `before`, not both")
        return self


class Tuned(Part):
    """Other retries or another timeout for a step of the run. A timeout of 0s is none."""

    step: Name
    max_attempts: int | None = Field(default=None, ge=1, le=100)
    timeout: Duration | None = None

    @model_validator(mode="after")
    def _something(self) -> Self:
        if self.max_attempts is None and self.timeout is None:
            raise ValueError("say max_attempts, timeout, or both")
        return self


class Moment(Part):
    """One thing that happens. `run` names a run started by a moment; `refused` is the code it must be refused with."""

    approve: Annotated[Decision | None, short("step", Decision)] = None
    reject: Annotated[Decision | None, short("step", Decision)] = None
    resolve: Annotated[Resolution | None, short("step", Resolution)] = None
    publish: Annotated[Published | None, short("event", Published)] = None
    signal: Annotated[Sent | None, short("name", Sent)] = None
    reach: Annotated[Reached | None, short("step", Reached)] = None
    trigger: Started | None = None
    advance: Duration | None = None
    until: Instant | None = None
    control: RunControl | None = None
    pause: Name | None = None
    resume: Name | None = None
    reset: Name | Forked | None = None
    fire: Fired | None = None
    tune: Tuned | None = None
    continue_as_new: GoneOn | None = None
    expect: Expected | None = None
    run: str = ""
    refused: str | None = None

    @model_validator(mode="after")
    def _one_verb(self) -> Self:
        given = [name for name in VERBS if getattr(self, name) is not None]
        if len(given) != 1:
            told = f"found {', '.join(given)}" if given else "found none"
            raise ValueError(f"a moment is one of {', '.join(VERBS)} ({told}), or one of {', '.join(RUN_CONTROLS)}")
        return self

    @property
    def verb(self) -> str:
        """Which of the fields is given."""
        return next(name for name in VERBS if getattr(self, name) is not None)


VERBS: Final = tuple(name for name in Moment.model_fields if name not in ("run", "refused"))


def _moment(value: Any) -> Any:
    """`- cancel` stands for `- control: cancel`."""
    return {"control": value} if isinstance(value, str) else value


class Faults(Part):
    """What strikes the installation while a case runs once more, with `seeds` different turns of chance.

    `crash: random` kills the process between any two steps of its work; `duplicates` brings messages and wake-ups
    twice; `delays` brings messages to workers up to 20 s late.
    """

    crash: Literal["never", "random"] = "never"
    duplicates: bool = False
    delays: bool = False
    seeds: int = Field(default=5, ge=1, le=MAX_SEEDS)

    @property
    def any(self) -> bool:
        return self.crash == "random" or self.duplicates or self.delays


class Case(Part):
    """One test. Without `then.status` the run must complete, or with `then.error` fail.

    `refused` is the code that the trigger must be refused with; no run exists then.
    """

    name: Name
    given: Given = Given()
    when: list[Annotated[Moment, BeforeValidator(_moment, json_schema_input_type=RunControl | Moment)]] = Field(
        default_factory=list
    )
    then: Expected = Expected()
    faults: Faults | None = None
    refused: str | None = None

    @model_validator(mode="after")
    def _nothing_after_a_refusal(self) -> Self:
        if self.refused is not None and (self.when or self.gives("then")):
            raise ValueError("a trigger that is refused starts no run: leave `when` and `then` out")
        return self


class CaseFile(Part):
    """A test file. Paths are relative to it; `workflows` are further definitions, published before `workflow`."""

    type: Literal["workflow_test"]
    workflow: Name
    workflows: list[Name] = Field(default_factory=list)
    given: Given = Given()
    faults: Faults = Faults()
    cases: list[Case] = Field(min_length=1, max_length=MAX_CASES)

    @model_validator(mode="after")
    def _names_differ(self) -> Self:
        names = [case.name for case in self.cases]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"two cases are named {twice[0]!r}; give each case a name of its own")
        return self
