"""Plays one case in its world: triggers the run, lets the moments of `when` happen one after the other, and looks."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator
from typing import Final

import msgspec

from ductor.app.access import Caller
from ductor.app.admission import Label, TriggerRequest
from ductor.app.decisions import ErrorGiven, Resolve
from ductor.app.decisions import Verdict as Say
from ductor.app.node_controls import NodeRequest
from ductor.app.reset import ResetRequest
from ductor.app.signals import SignalRequest
from ductor.model.enums import StepType
from ductor.model.errors import RefusedError
from ductor.model.waiting import Event
from ductor.steps import approval
from ductor.testing.cases.checks import Failure, check, check_final
from ductor.testing.cases.document import Case, Decision, Fired, Forked, Given, Moment, Reached, Started, Subject
from ductor.testing.cases.forms import epoch_ms, milliseconds
from ductor.testing.cases.observed import Observed
from ductor.testing.cases.player import Player
from ductor.testing.cases.points import fork_point
from ductor.testing.cases.reading import Path
from ductor.testing.cases.stage import Stage
from ductor.testing.cases.timetable import described

MAIN: Final = ""
"""The name of the run under test."""


class ImpossibleMomentError(Exception):
    """What the test wants to happen cannot happen."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.actual)
        self.failure = failure


class Script:
    """One play of one case. `runs` are the ids of its runs by name; the one under test has the name ``."""

    def __init__(self, case: Case, given: Given, stage: Stage, player: Player, place: Path) -> None:
        self._case = case
        self._given = given
        self._stage = stage
        self._player = player
        self._place = place
        self.runs: dict[str, str] = {}
        self._verbs: dict[str, Callable[[Moment, Path], Iterator[Failure]]] = {
            "approve": self._decide,
            "reject": self._decide,
            "resolve": self._resolve,
            "publish": self._publish,
            "signal": self._signal,
            "reach": self._reach,
            "trigger": self._trigger,
            "control": self._control,
            "pause": self._node,
            "resume": self._node,
            "reset": self._reset,
            "fire": self._fire,
            "tune": self._tune,
            "continue_as_new": self._go_on,
            "advance": self._time,
            "until": self._time,
            "expect": self._expect,
        }

    def play(self) -> Iterator[Failure]:
        """Every expectation that does not hold. Raises ImpossibleMomentError, RestlessError."""
        given = self._given
        if given.scheduled_at is not None or any(moment.fire for moment in self._case.when):
            self._player.timetable.runs = self._player.net.spread = True
        own = Started.model_construct(
            name=MAIN,
            workflow="",
            input=given.input,
            variables=given.variables,
            subject=given.subject,
            labels=given.labels,
        )
        try:
            if given.scheduled_at is not None:
                self._fired(Fired.model_construct(at=given.scheduled_at, name=MAIN), (*self._place, "given"))
            else:
                self._start(own, (*self._place, "given"))
        except RefusedError as refused:
            yield from self._refused(refused)
            return
        if self._case.refused is not None:
            yield Failure((*self._place, "refused"), f"a trigger refused with {self._case.refused}", "accepted")
        for number, moment in enumerate(self._case.when):
            yield from self._happen(moment, (*self._place, "when", number))
        yield from self._look()

    def _refused(self, refused: RefusedError) -> Iterator[Failure]:
        """The trigger of the run was refused."""
        if self._case.refused not in [violation.code for violation in refused.violations]:
            wanted = f"refused with {self._case.refused}" if self._case.refused else "a trigger that is accepted"
            actual = "; ".join(f"{one.field}: {one.message} [{one.code}]" for one in refused.violations)
            yield Failure((*self._place, "refused" if self._case.refused else "given"), wanted, actual)

    def _look(self) -> Iterator[Failure]:
        """At the end: where the test expects a run that goes on, as it is now; else after all time."""
        self._player.timetable.runs = False
        wanted = self._case.then.status
        if wanted is None or wanted.terminal:
            self._player.skip_until(self._all_ended)
        else:
            self._player.settle()
        place = (*self._place, "then")
        yield from check_final(self._case.then, self._seen(MAIN), place)
        for name, expected in self._case.then.runs.items():
            if name in self.runs:
                yield from check_final(expected, self._seen(name), (*place, "runs", name))
            else:
                known = ", ".join(run for run in self.runs if run) or "none"
                yield Failure((*place, "runs", name), "a run that a moment started", f"started were: {known}")

    def _all_ended(self) -> bool:
        return all(self._stage.ended(run_id) for run_id in self._stage.run_ids())

    def story(self, name: str) -> list[str]:
        """A run in a few lines."""
        told = [f"of the run {name}:"] if name else []
        return [*told, *self._seen(name).story()]

    def _seen(self, name: str) -> Observed:
        return Observed(self._stage, self.runs[name])

    def _happen(self, moment: Moment, place: Path) -> Iterator[Failure]:
        self._player.settle()
        if moment.run not in self.runs:
            raise ImpossibleMomentError(Failure((*place, "run"), "a run that a moment started", moment.run))
        at = (*place, moment.verb)
        try:
            yield from self._verbs[moment.verb](moment, at)
        except RefusedError as refused:
            codes = [violation.code for violation in refused.violations]
            if moment.refused not in codes:
                wanted = "accepted" if moment.refused is None else f"refused with {moment.refused}"
                actual = f"refused with {', '.join(codes)}: {refused.message}"
                raise ImpossibleMomentError(Failure(at, wanted, actual)) from None
        else:
            if moment.refused is not None:
                yield Failure((*place, "refused"), f"refused with {moment.refused}", "accepted")
        self._player.settle()

    def _await(self, moment: Moment, step: str, place: Path, met: Callable[[Observed], bool], what: str) -> None:
        """Skip the clock until the step is there. A moment that is to be refused happens now."""
        if not self._seen(moment.run).knows(step.partition("@")[0]):
            refs = ", ".join(self._seen(moment.run).refs)
            raise ImpossibleMomentError(Failure(place, f"a step {step}", f"no such step; the steps are {refs}"))
        if moment.refused is not None:
            return
        if not self._player.skip_until(lambda: met(self._seen(moment.run))):
            seen = self._seen(moment.run)
            actual = (
                f"{step} is {seen.node_status(step) if seen.knows(step) else 'not there'}, the run {seen.status.value}"
            )
            raise ImpossibleMomentError(Failure(place, f"{step} {what}", actual, tuple(seen.story())))

    def _decide(self, moment: Moment, place: Path) -> Iterator[Failure]:
        decision = moment.approve or moment.reject
        assert decision is not None
        self._await(moment, decision.step, place, lambda run: run.is_open(decision.step), "waits for a decision")
        say = Say(
            request_id=_request(place),
            approver_id=decision.approver_id,
            comment=decision.comment,
            payload=decision.payload,
        )
        decide = self._stage.decisions.approve if moment.approve else self._stage.decisions.reject
        caller = self._person(decision, self.runs[moment.run])
        self._player.ask(lambda: decide(caller, self.runs[moment.run], decision.step, say))
        yield from ()

    def _person(self, decision: Decision, run_id: str) -> Caller:
        """Who decides: as the test says, else somebody whom the audience of the step admits."""
        caller = self._stage.caller
        if decision.by is not None:
            return msgspec.structs.replace(caller, roles=frozenset(decision.by.roles), user=decision.by.user)
        node = self._stage.graph(run_id).by_ref.get(decision.step.partition("@")[0])
        if node is None or node.step.type is not StepType.APPROVAL:
            return caller
        audience = approval.parse_args(node.step.args).audience
        user = audience.users[0] if audience.users else ""
        return msgspec.structs.replace(caller, roles=frozenset(audience.roles), user=user)

    def _resolve(self, moment: Moment, place: Path) -> Iterator[Failure]:
        given = moment.resolve
        assert given is not None
        self._await(moment, given.step, place, lambda run: run.is_open(given.step), "waits")
        error = ErrorGiven(code=given.error.code, message=given.error.message) if given.error else None
        request = Resolve(request_id=_request(place), payload=given.payload, error=error)
        stage, run_id = self._stage, self.runs[moment.run]
        self._player.ask(lambda: stage.decisions.resolve(stage.caller, run_id, given.step, request))
        yield from ()

    def _publish(self, moment: Moment, place: Path) -> Iterator[Failure]:
        given = moment.publish
        assert given is not None
        event = Event(
            event_name=given.event,
            event_id=given.id or _request(place),
            correlation_key=given.key,
            payload=given.payload,
        )
        done = self._player.ask(lambda: self._stage.events.publish(self._stage.caller, event))
        # Whoever repeats an event is told of no match: it has been delivered.
        if self._player.tries == 1 and given.matched is not None and done.matched != given.matched:
            yield Failure((*place, "matched"), f"{given.matched} waiting steps", str(done.matched))
        if given.starts is not None:
            self._name_started(event, given.starts, (*place, "starts"))

    def _name_started(self, event: Event, names: list[str], place: Path) -> None:
        """Runs that an event started are like those of a `trigger` from here on."""
        started = [run_id for run_id in self._stage.run_ids() if self._is_from(run_id, event)]
        if len(started) != len(names):
            raise ImpossibleMomentError(Failure(place, f"{len(names)} runs that the event starts", str(len(started))))
        taken = [name for name in names if name in self.runs]
        if taken:
            raise ImpossibleMomentError(Failure(place, "a name of its own", f"{taken[0]} is taken"))
        self.runs.update(zip(names, started, strict=True))

    def _is_from(self, run_id: str, event: Event) -> bool:
        origin = self._stage.state(run_id).origin
        cause = origin.event if not origin.parent_run_id else None
        return isinstance(cause, dict) and (cause.get("event_name"), cause.get("event_id")) == (
            event.event_name,
            event.event_id,
        )

    def _signal(self, moment: Moment, place: Path) -> Iterator[Failure]:
        given = moment.signal
        assert given is not None
        request = SignalRequest(request_id=_request(place), name=given.name, payload=given.payload)
        stage, run_id = self._stage, self.runs[moment.run]
        self._player.ask(lambda: stage.signals.signal(stage.caller, run_id, request))
        yield from ()

    def _reach(self, moment: Moment, place: Path) -> Iterator[Failure]:
        given = moment.reach
        assert given is not None
        what = f"is {given.status.value}" if given.status else "waits or has ended"
        self._await(moment, given.step, place, lambda run: _has_reached(run, given), what)
        yield from ()

    def _trigger(self, moment: Moment, place: Path) -> Iterator[Failure]:
        assert moment.trigger is not None
        self._start(moment.trigger, place)
        yield from ()

    def _start(self, started: Started, place: Path) -> None:
        family = started.workflow or self._stage.mocks.main_family
        definition_id = self._stage.families.get(family)
        if definition_id is None:
            known = ", ".join(self._stage.families)
            raise ImpossibleMomentError(Failure((*place, "workflow"), f"one of {known}", family))
        self._free(started.name, place)
        subject = started.subject or Subject.model_construct(type="", id="")
        request = TriggerRequest(
            input=started.input,
            variables=started.variables,
            subject_type=subject.type,
            subject_id=subject.id,
            idempotency_key=_request(place),
            correlation_labels=tuple(Label(key, value) for key, value in started.labels.items()),
        )
        stage = self._stage
        triggered = self._player.ask(lambda: stage.triggers.trigger(stage.caller, definition_id, request))
        self.runs[started.name] = triggered.run_id

    def _control(self, moment: Moment, place: Path) -> Iterator[Failure]:
        assert moment.control is not None
        operation, run_id, request = moment.control, self.runs[moment.run], _request(place)
        self._player.ask(lambda: self._stage.controls.send(self._stage.caller, run_id, operation, request))
        yield from ()

    def _node(self, moment: Moment, place: Path) -> Iterator[Failure]:
        node: str = getattr(moment, moment.verb)
        request, run_id, verb = NodeRequest(request_id=_request(place)), self.runs[moment.run], moment.verb
        self._player.ask(lambda: self._stage.operations.nodes.send(self._stage.caller, run_id, node, verb, request))
        yield from ()

    def _reset(self, moment: Moment, place: Path) -> Iterator[Failure]:
        if not isinstance(moment.reset, Forked):
            yield from self._node(moment, place)
            return
        given, run_id = moment.reset, self.runs[moment.run]
        self._free(given.name, place)
        stage, point = self._stage, fork_point(given, self._stage.history(run_id))
        if point is None:
            field, what = ("after", "ended") if given.after else ("before", "begun")
            actual = given.after or given.before or ""
            raise ImpossibleMomentError(Failure((*place, field), f"a step that has {what} by now", actual))
        request = ResetRequest(
            request_id=_request(place),
            transition_seq=point,
            input_overrides=given.input,
            preserve_outputs=tuple(given.preserve),
        )
        self._player.net.spread = True
        fork = self._player.ask(lambda: stage.operations.resets.reset(stage.caller, run_id, request))
        self.runs[given.name] = fork

    def _fire(self, moment: Moment, place: Path) -> Iterator[Failure]:
        assert moment.fire is not None
        self._fired(moment.fire, place)
        yield from ()

    def _fired(self, given: Fired, place: Path) -> None:
        """Let time pass up to the instant; the schedule must have done with it what the test says."""
        family = given.workflow or self._stage.mocks.main_family
        timetable, at = self._player.timetable, epoch_ms(given.at)
        schedule = timetable.schedule(family) if family in self._stage.families else None
        if schedule is None:
            raise ImpossibleMomentError(Failure(place, "a workflow with a schedule", f"{family} has none"))
        if given.name is not None:
            self._free(given.name, place)
        self._player.advance_to(max(at + schedule.jitter_ms, self._stage.clock.now))
        found = timetable.occurrence(family, at)
        if found is None:
            near = ", ".join(map(_iso, timetable.upcoming(schedule, at)))
            raise ImpossibleMomentError(
                Failure(
                    (*place, "at"), f"an instant of the schedule of {family}", f"none; after it come {near or 'none'}"
                )
            )
        if found.outcome is not given.outcome:
            raise ImpossibleMomentError(Failure(place, given.outcome.value, described(found)))
        if given.name is not None:
            self.runs[given.name] = found.run_id

    def _tune(self, moment: Moment, place: Path) -> Iterator[Failure]:
        given, run_id, request_id = moment.tune, self.runs[moment.run], _request(place)
        assert given is not None
        nodes, caller = self._stage.operations.nodes, self._stage.caller
        if given.max_attempts is not None:
            retries = NodeRequest(request_id=f"{request_id}-retry", retry={"max_attempts": given.max_attempts})
            self._player.ask(lambda: nodes.send(caller, run_id, given.step, "updateRetryPolicy", retries))
        if given.timeout is not None:
            limit = NodeRequest(request_id=request_id, timeout_ms=milliseconds(given.timeout))
            self._player.ask(lambda: nodes.send(caller, run_id, given.step, "updateTimeout", limit))
        yield from ()

    def _go_on(self, moment: Moment, place: Path) -> Iterator[Failure]:
        given, run_id, request_id = moment.continue_as_new, self.runs[moment.run], _request(place)
        assert given is not None
        self._free(given.name, place)
        stage, drop = self._stage, given.discard_pending
        moved = self._player.ask(
            lambda: stage.continuations.send(
                stage.caller, run_id, request_id, seed_run_context=given.context, discard_pending=drop
            )
        )
        self.runs[given.name] = moved.new_run_id
        yield from ()

    def _free(self, name: str, place: Path) -> None:
        if name in self.runs:
            raise ImpossibleMomentError(Failure((*place, "as"), "a name of its own", f"{name} is taken"))

    def _time(self, moment: Moment, place: Path) -> Iterator[Failure]:
        now = self._stage.clock.now
        until = now + milliseconds(moment.advance) if moment.advance is not None else epoch_ms(moment.until or "")
        if until < now:
            raise ImpossibleMomentError(Failure(place, "a moment that is still to come", f"it is {_iso(now)} already"))
        self._player.advance_to(until)
        yield from ()

    def _expect(self, moment: Moment, place: Path) -> Iterator[Failure]:
        assert moment.expect is not None
        yield from check(moment.expect, self._seen(moment.run), place)


def _has_reached(run: Observed, wanted: Reached) -> bool:
    if not run.knows(wanted.step):
        return False
    if wanted.status is not None:
        return run.node_status(wanted.step) == wanted.status.value
    return run.is_open(wanted.step)


def _request(place: Path) -> str:
    """A request id of the moment at this place: the same at each try."""
    return "-".join(str(part) for part in place[2:])


def _iso(at: int) -> str:
    return datetime.datetime.fromtimestamp(at / 1000, datetime.UTC).isoformat().replace("+00:00", "Z")
