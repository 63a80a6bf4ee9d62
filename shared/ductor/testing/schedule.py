"""Drives a world: at random while faults strike, then orderly until every run has ended or visibly waits."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Final

from ductor.app.headers import HEAD, awaits_start, run_pk
from ductor.app.sweeper import OVERDUE_MS
from ductor.app.trigger import START_WAKE_MS
from ductor.model.enums import RunStatus, StepType
from ductor.model.errors import RefusedError
from ductor.ports import UnavailableError
from ductor.testing.actors import VISIBILITY_MS, CoordinatorActor, WorkerActor
from ductor.testing.batches import ManyAtOnce, next_look
from ductor.testing.chaos import Crash
from ductor.testing.levers import Levers
from ductor.testing.pauses import Outside
from ductor.testing.rounds import Rounds
from ductor.testing.world import World

DRAIN_ROUNDS: Final = 12_000
"""After so many rounds without faults a world that is still busy counts as never coming to rest. Half a dozen runs that
look once a day behind somebody who is paused, on clocks that differ, take some thousands."""

AT_REST_MS: Final = 30 * 86_400_000
"""After so long whoever still waits, waits for an operator: what goes on is a look a day at the other side."""

SWEEP_MS: Final = 60_000
"""How often the sweeper comes by, at most."""

ROUND_MS: Final = 100
"""How long a round of work takes. Where clocks differ, a wake-up comes early until that time has passed."""

Event = Callable[[], None]

_OPERATIONS: Final = (
    *("pause", "pause", "pause", "resume", "resume", "resume", "redrive"),
    *("cancel", "terminate", "continueAsNew"),
)


class NeverAtRestError(Exception):
    """The installation goes on working without getting anywhere."""


class Client:
    """Somebody who wants one run and asks again until told that it is there."""

    def __init__(self, definition_id: str, value: object, key: str) -> None:
        self.definition_id = definition_id
        self.value = value
        self.key = key
        self.run_id: str | None = None


class Schedule:
    """Picks who acts next, from the world's seed."""

    def __init__(self, world: World, clients: list[Client]) -> None:
        self.world = world
        self.clients = clients
        self._rng = world.rng
        self._busy: set[str] = set()
        self._requests = 0
        self._last_request: tuple[str, str, str] | None = None
        self._swept_at = 0
        self._rounds = Rounds(world)
        self.outside = Outside(world)
        world.chaos.meanwhile = self._meanwhile
        self._events: list[Event] = [
            *[self._coordinate] * 6,
            *[self._claim] * 3,
            *[self._begin] * 3,
            *[self._finish] * 4,
            *[self._look] * 1,
            *[self._fire] * 3,
            *[self._advance] * 3,
            *[self._ask] * 1,
            *[self._reach_in] * 3,
        ]
        if any(step.type is StepType.BRIDGE for step in world.steps_published()):
            self._events += [self._outsider] * 8
        self.levers = Levers(world)
        self.many = ManyAtOnce(world)
        if world.rng.random() < world.profile.operators:
            self._events += [self._operate] * self._rng.randint(1, 3)
            self._events += [self._lever] * self._rng.randint(1, 4)
        if world.profile.sweeper:
            self._events.append(self._sweep)
        if world.chaos.chances.fault:
            self._events += [self._break, self._mend]

    def strike(self, events: int) -> None:
        """So many random events, with faults."""
        for client in self.clients:
            self._guarded("client", lambda client=client: self._want(client), self._nothing)  # type: ignore[misc]
        for _ in range(events):
            self._rng.choice(self._events)()

    # Every event guards itself: an actor may die in it, and storage may be away.

    def _guarded(self, name: str, act: Event, restart: Event) -> None:
        """Run one actor's step. A crash costs it what it remembers; unavailable storage only this step."""
        if name in self._busy:
            return
        self._busy.add(name)
        self.world.ledger.say(f"{self.world.clock.now} {name}: {getattr(act, '__doc__', None) or 'acts'}")
        try:
            act()
        except Crash:
            restart()
        except (UnavailableError, RefusedError) as error:
            self.world.ledger.say(f"        {type(error).__name__}: {error}")
        except ExceptionGroup as several:
            if several.split(UnavailableError)[1] is not None:
                raise
            self.world.ledger.say(f"        {several}")
        finally:
            self._busy.discard(name)

    def _nothing(self) -> None:
        """Nobody to restart."""

    def _meanwhile(self) -> None:
        chaos = self.world.chaos
        if len(self._busy) > 1:
            return
        if chaos.strikes(chaos.chances.overslept):
            self.world.clock.advance(VISIBILITY_MS + 1)
        self._rng.choice((self._coordinate, self._coordinate, self._claim, self._finish, self._fire))()

    def _coordinate(self, limit: int | None = None) -> None:
        actor = self._rng.choice(self.world.coordinators)
        size = limit or self._rng.choice((1, 1, 2, 3, 10))
        self._guarded(actor.name, lambda: self._deliver(actor, size), actor.restart)

    def _deliver(self, actor: CoordinatorActor, size: int) -> None:
        count = actor.deliver(size, self._rng if self.world.chaos.on else None)
        self.world.ledger.say(f"        {count} intents")

    def _worker(self) -> WorkerActor:
        return self._rng.choice(self.world.workers)

    def _claim(self) -> None:
        actor = self._worker()
        self._guarded(actor.name, lambda: void(actor.claim(self._rng.choice((1, 1, 3, 10)))), actor.restart)

    def _begin(self) -> None:
        actor = self._worker()
        if actor.waiting:
            self._guarded(actor.name, lambda: actor.begin(self._rng.choice(actor.waiting)), actor.restart)

    def _finish(self) -> None:
        actor = self._worker()
        ready = actor.ready
        if ready:
            done = ready if self._rng.random() < 0.5 else ready[:1]
            self._guarded(actor.name, lambda: actor.finish(done), actor.restart)

    def _look(self) -> None:
        actor = self._worker()
        if not actor.running:
            return
        dice = self._rng.random()
        if dice < 0.7:
            heed = self._rng.random() < 0.7
            self._guarded(actor.name, lambda: actor.look(heed=heed), actor.restart)
        elif dice < 0.9:
            self._guarded(actor.name, lambda: actor.beat(self._rng.choice(actor.running)), actor.restart)
        else:
            self._guarded(actor.name, actor.leave, actor.restart)

    def _outsider(self) -> None:
        actor = self._rng.choice(self.world.outsiders)
        self._guarded(actor.name, actor.act, actor.die)

    def _fire(self) -> None:
        self._guarded("timer", lambda: void(self.world.timer.step()), self._nothing)

    def _sweep(self) -> None:
        self._guarded("sweeper", lambda: void(self.world.sweeper.sweep()), self._nothing)

    def _advance(self) -> None:
        rng, clock = self._rng, self.world.clock
        dice = rng.random()
        if dice < 0.4:
            clock.advance(rng.randrange(1, 200))
        elif dice < 0.7:
            clock.advance(rng.randrange(1_000, 12_000))
        elif dice < 0.9:
            self._jump()
        else:
            clock.advance(rng.randrange(60_000, 120_000))

    def _jump(self) -> None:
        """To just about when the next timer is due."""
        at = self.world.timers.next_at()
        if at is not None and at > self.world.clock.now:
            self.world.clock.set(at + self._rng.choice((-1, 0, 1)))

    def _ask(self) -> None:
        """A client repeats its trigger, or asks for the first time."""
        client = self._rng.choice(self.clients)
        if client.run_id is None or self._rng.random() < 0.1:
            self._guarded("client", lambda: self._want(client), self._nothing)

    def _want(self, client: Client) -> None:
        run_id = self.world.trigger(client.definition_id, client.value, client.key)
        if client.run_id not in (None, run_id):
            raise AssertionError(f"one key gave two runs: {client.run_id} and {run_id}")
        client.run_id = run_id
        # Whoever was told of the run may lose the message that starts it only by a crash before the answer.
        self.world.ledger.say(f"        run {run_id}")

    def _operate(self) -> None:
        runs = self.world.run_ids()
        if not runs:
            return
        rng = self._rng
        if self._last_request is not None and rng.random() < 0.3:
            run_id, operation, request_id = self._last_request
        else:
            self._requests += 1
            failed = self._failed(runs)
            run_id, request_id = rng.choice(failed or runs), f"r{self._requests}"
            operation = "redrive" if failed else rng.choice(_OPERATIONS)
            self._last_request = (run_id, operation, request_id)
        self.world.ledger.say(f"        {operation} {run_id} {request_id}")
        ask = self.world.continue_as_new if operation == "continueAsNew" else self.world.control
        self._guarded("operator", lambda: ask(run_id, operation, request_id), self._nothing)

    def _failed(self, runs: list[str]) -> list[str]:
        """Now and then those that a redrive is for: few others end up like that."""
        if self._rng.random() > 0.5:
            return []
        whole = [run for run in runs if not self.world.damaged(run)]
        return [run for run in whole if self.world.state(run).status in (RunStatus.FAILED, RunStatus.TIMED_OUT)]

    def _lever(self) -> None:
        # What a request has stored before it dies, a fork or a batch, is found by the sweeper alone.
        dice = self._rng.random() if self.world.profile.sweeper else 1.0
        act = self.levers.fork if dice < 0.2 else self.many.act if dice < 0.25 else self.levers.pull
        self._guarded("operator", act, self._nothing)

    def _reach_in(self) -> None:
        self._guarded("outside", self.outside.act, self._nothing)

    def _break(self) -> None:
        """The engine begins to fail on new steps, or one state becomes unreadable."""
        world, rng = self.world, self._rng
        if not world.chaos.strikes(world.chaos.chances.fault):
            return
        if rng.random() < 0.5 or not world.run_ids():
            world.broken = True
        else:
            world.damage(rng.choice(world.run_ids()))

    def _mend(self) -> None:
        if self._rng.random() < 0.3:
            self.world.mend()

    # Without faults

    def drain(self) -> None:
        """No faults from here: work until nothing moves, then let operators free what only they can free."""
        self.world.chaos.on = False
        self.world.mend()
        for client in self.clients:
            if client.run_id is None:
                with suppress(RefusedError):
                    self._want(client)
        self.work_off()

    def free(self) -> None:
        """Operators redrive what is stalled and resume what is paused; then it runs to its end."""
        for run_id in self.world.run_ids():
            if self.world.stalled(run_id):
                self.world.control(run_id, "redrive", "free-redrive")
        self.work_off()
        self.levers.release()
        for run_id in self.world.run_ids():
            if self.world.state(run_id).status is RunStatus.PAUSED:
                self.world.control(run_id, "resume", "free-resume")
        self.work_off()

    def work_off(self) -> None:
        """Work and let time pass until nothing is left to happen. Raises NeverAtRestError."""
        until = self.world.clock.now + AT_REST_MS
        for turn in range(DRAIN_ROUNDS):
            if self.world.clock.now > until:
                return
            if self.round():
                self.world.clock.advance(ROUND_MS)
            elif not (self._free(turn) or self._wait() or self.outside.free(turn) or self.world.tell()):
                return
        raise NeverAtRestError(f"still busy after {DRAIN_ROUNDS} rounds")

    def _free(self, turn: int) -> bool:
        """The outside does its part, most of the time at once; a wait without end is looked after meanwhile."""
        return self._rng.random() < 0.7 and self.outside.free(turn)

    def round(self) -> bool:
        """Everybody does what can be done at this moment; whether anybody did anything."""
        return self._rounds.round()

    def _wait(self) -> bool:
        """Let time pass until the next thing can happen; False when there is none."""
        world = self.world
        now = world.clock.now
        if world.profile.sweeper and now >= self._swept_at + SWEEP_MS:
            # Also while others are busy: whoever looks at something once a day must not keep the sweeper away.
            self._swept_at = now
            world.sweeper.sweep()
        moment = self._rounds.next_moment()
        if moment is not None:
            world.clock.set(max(moment, now + 1))
            return True
        return world.profile.sweeper and self._sweep_next()

    def _sweep_next(self) -> bool:
        """The sweeper's turn: at the next overdue wake-up, when nothing else is left to wait for."""
        world = self.world
        due = [
            int(item.i3[1].split("#")[0]) + (START_WAKE_MS if awaits_start(item) else 0)
            for run_id in world.run_ids()
            if (item := world.table.get(run_pk(run_id), HEAD)) is not None
            and item.i3 is not None
            and item.i3[0].startswith(("WAKE#", "STARTING#"))
        ]
        batch = next_look(world)
        moments = [moment + OVERDUE_MS + 1 for moment in due] + ([batch] if batch is not None else [])
        if not moments:
            return False
        world.clock.set(max(min(moments), world.clock.now))
        if batch is not None and batch <= world.clock.now:
            world.sweeper.sweep()
            return True
        woken = world.sweeper.sweep() > 0
        if woken and not world.intents.depth():
            world.clock.advance(SWEEP_MS)  # the queue has swallowed what it had minutes ago
        return woken


def void(value: object) -> None:
    """Events return nothing."""
    del value
