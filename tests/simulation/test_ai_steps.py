"""AI steps through crashes: what the model said and what its tools gave is recorded, and never asked for again."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import Any
from unittest.mock import patch

import pytest
from tests.simulation.scene import Scene, edge, flow, shape

from ductor.app.ai_journal import Conversation, Entry, Journal, Turn
from ductor.app.library import Library
from ductor.app.prices import ModelPrice, Prices
from ductor.app.run_cost import RunCost, RunCosts
from ductor.model.definition import Definition, Retry, Step
from ductor.model.enums import EdgeType, StepType
from ductor.ports import UnavailableError
from ductor.testing.actors import LEASE_MS
from ductor.testing.chaos import Crash
from ductor.testing.models import TOOL, ai_step
from ductor.testing.seeds import run_seed


def agent(plan: str, retry: Retry | None = None, **args: object) -> Step:
    given = {"model": "m", "prompt": plan, "max_tokens": 100, "max_turns": 8, "tools": [TOOL], **args}
    return Step(ref="a", type=StepType.AI_AGENT, args=given, retry=retry or Retry())


def ask(plan: str, **args: object) -> Step:
    return Step(ref="a", type=StepType.AI_ACTION, args={"model": "m", "prompt": plan, "max_tokens": 100, **args})


class Dying:
    """The process dies at the n-th entry that is recorded, before or after it is on disk; once."""

    def __init__(self, place: int, *, after: bool) -> None:
        self._left = place
        self._after = after
        self._original = Journal.append

    @contextmanager
    def __call__(self) -> Iterator[None]:
        def append(journal: Journal, talk: Conversation, entry: Entry, connection: object) -> Entry:
            dies = self._left == 0
            self._left -= 1
            if dies and not self._after:
                raise Crash("before an entry")
            recorded = self._original(journal, talk, entry, None)
            if dies:
                raise Crash("after an entry")
            return recorded

        with patch.object(Journal, "append", append):
            yield


def work_and_die(scene: Scene, place: int, *, after: bool) -> None:
    """A worker takes the agent's attempt and dies in it; its lease runs out."""
    scene.deliver()
    with Dying(place, after=after)():
        try:
            scene.work()
        except Crash:
            scene.world.workers[0].restart()
        else:
            raise AssertionError(f"there was no entry {place}")
    scene.clock.advance(LEASE_MS + 1)


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("place", range(7))
def test_a_crash_between_any_two_entries_repeats_no_finished_call(place: int, after: bool) -> None:
    scene = Scene(flow(agent("turns=2 calls=2"), shape("b", "STEPS.a.output.turns"), edge("a", "b")))
    work_and_die(scene, place, after=after)
    scene.settle()
    assert (scene.status, scene.faults) == ("completed", [])
    calls = scene.world.ledger.tool_calls
    assert len({key for _, _, key in calls}) == 4
    in_flight = not after and place in (1, 2, 4, 5)
    assert len(calls) == 4 + in_flight
    assert scene.world.output(scene.run_id, "b") == {"result": {"v": 3}}
    assert scene.world.attempts(scene.run_id)[0].deliveries == 2


def test_a_worker_that_could_not_renew_its_claim_begins_no_call_that_another_may_have_made() -> None:
    """It was cut off from the table for longer than its lease, between the model's answer and the tool."""
    scene = Scene(flow(agent("turns=1")))
    scene.deliver()
    first, second = scene.world.workers[:2]
    first.claim(100)
    (held,) = first.waiting
    append = Journal.append

    def cut_off(journal: Journal, talk: Conversation, entry: Entry, connection: Any) -> Entry:
        recorded = append(journal, talk, entry, connection)
        scene.clock.advance(LEASE_MS + 1)
        with patch.object(Journal, "append", append):
            scene.work(1)
        return recorded

    with patch.object(Journal, "append", cut_off), patch.object(first.worker, "renew", side_effect=UnavailableError):
        first.begin(held)
    assert second.ready == []
    assert [key.split("/")[-1] for _, _, key in scene.world.ledger.tool_calls] == ["t0.0"]
    scene.settle()
    assert (scene.status, scene.faults) == ("completed", [])
    assert len(scene.world.ledger.tool_calls) == 1


def test_a_call_that_a_crash_interrupted_has_the_same_key_again() -> None:
    scene = Scene(flow(agent("turns=1")))
    work_and_die(scene, 1, after=False)
    scene.settle()
    first, second = scene.world.ledger.tool_calls
    assert first == second


def test_a_retry_goes_on_with_the_same_conversation() -> None:
    scene = Scene(flow(agent("turns=1 fail=2", Retry(max_attempts=3, backoff_ms=1_000))))
    scene.settle()
    assert scene.status == "completed"
    assert [row.status.value for row in scene.world.attempts(scene.run_id)] == ["failed", "failed", "succeeded"]


def test_what_each_attempt_used_stands_in_its_row() -> None:
    scene = Scene(flow(agent("turns=2")))
    work_and_die(scene, 2, after=True)
    scene.settle()
    (use,) = scene.world.attempts(scene.run_id)[0].usage
    assert (use.provider, use.model, use.calls, use.input_tokens) == ("talker", "m", 1, 10)
    assert scene.world.output(scene.run_id, "a")["usage"]["calls"] == 3


def costs_of(scene: Scene, models: dict[str, ModelPrice] | None = None) -> RunCost:
    table = scene.world.table
    return RunCosts(table, Prices(models=models or {}), Library(table)).read(scene.world.caller, scene.run_id)


def test_the_cost_of_a_run_names_what_its_ai_steps_used_of_each_model() -> None:
    scene = Scene(flow(agent("turns=1 fail=1", Retry(max_attempts=2, backoff_ms=1_000)), shape("aa"), edge("a", "aa")))
    scene.settle()
    price = ModelPrice(input_tokens=3.0, output_tokens=15.0)
    (line,) = costs_of(scene, {"talker/m": price}).models
    assert (line.provider, line.model, line.calls, line.input_tokens, line.output_tokens) == ("talker", "m", 2, 20, 10)
    assert line.amount == pytest.approx((20 * 3 + 10 * 15) / 1_000_000)
    without = costs_of(scene)
    assert [(one.calls, one.amount) for one in without.models] == [(2, None)]
    assert (without.models_below, without.models_truncated) == ((), False)


def test_the_cost_of_a_scatter_adds_up_the_models_of_its_items_and_says_when_it_stops(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scatter = Step(ref="s", type=StepType.SCATTER, args={"items_expr": "[1, 2, 3]"})
    gather = Step(ref="g", type=StepType.GATHER, args={"policy": "all"})
    scene = Scene(flow(scatter, ask("say=x"), gather, edge("s", "a"), edge("a", "g")))
    scene.settle()
    assert [(line.calls, line.input_tokens) for line in costs_of(scene).models] == [(3, 30)]
    monkeypatch.setattr("ductor.app.model_bill.MAX_ATTEMPTS", 6)
    found = costs_of(scene)
    assert ([line.calls for line in found.models], found.models_truncated) == ([2], True)


def test_a_run_that_asks_no_model_has_no_line_for_one() -> None:
    scene = Scene(flow(shape("a")))
    scene.settle()
    assert costs_of(scene).models == ()


def test_a_limit_fails_the_run_by_name_and_a_redrive_begins_anew() -> None:
    scene = Scene(flow(agent("turns=9", max_turns=2)))
    scene.settle()
    error = scene.world.attempts(scene.run_id)[0].error
    assert (scene.status, error and error.code) == ("failed", "AI_TURNS_EXCEEDED")
    scene.control("redrive")
    scene.settle()
    assert [key.split("/")[-2:] for _, _, key in scene.world.ledger.tool_calls] == [["c1", "t0.0"], ["c2", "t0.0"]]


def test_a_crash_after_the_end_of_a_conversation_tells_of_that_end_and_begins_none() -> None:
    scene = Scene(flow(agent("turns=9", max_turns=2)))
    work_and_die(scene, 3, after=True)
    scene.settle()
    (row,) = scene.world.attempts(scene.run_id)
    assert (row.deliveries, row.error and row.error.code) == (2, "AI_TURNS_EXCEEDED")
    assert len(scene.world.ledger.tool_calls) == 1


def test_a_cancelled_run_gets_no_further_turn() -> None:
    scene = Scene(flow(agent("turns=2")))
    scene.deliver()
    scene.world.workers[0].claim(100)
    scene.control("cancel")
    scene.deliver()
    scene.world.workers[0].look(heed=False)
    (held,) = scene.world.workers[0].waiting
    held.claimed.written_at = 0
    scene.world.workers[0].look(heed=False)
    scene.world.workers[0].begin(held)
    scene.settle()
    assert (scene.status, scene.world.ledger.tool_calls) == ("cancelled", [])


def test_a_reset_of_the_step_begins_another_conversation_with_other_keys() -> None:
    scene = Scene(flow(agent("turns=2")))
    work_and_die(scene, 2, after=True)
    scene.world.control_node(scene.run_id, "a", "reset", "n1")
    scene.settle()
    assert (scene.status, scene.faults) == ("completed", [])
    before, *after = [key.removeprefix(f"{scene.run_id}/a") for _, _, key in scene.world.ledger.tool_calls]
    assert (before, after) == ("/c1/t0.0", ["/reset-1/c2/t0.0", "/reset-1/c2/t1.0"])


@pytest.mark.parametrize("place", [0, 1])
def test_a_crash_before_the_repair_does_not_pay_for_the_first_answer_again(place: int) -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}}
    scene = Scene(flow(ask('say={"n": "x"}', output_schema=schema)))
    work_and_die(scene, place, after=True)
    scene.settle()
    error = scene.world.attempts(scene.run_id)[0].error
    assert (scene.status, error and error.code) == ("failed", "AI_OUTPUT_INVALID")
    entries = Journal(scene.world.table, scene.world.payloads).all_of(scene.run_id, "a")
    assert sum(isinstance(entry, Turn) for entry in entries) == 2


def test_an_agent_that_did_not_read_its_record_would_be_found_out() -> None:
    scene = Scene(flow(agent("turns=1")))
    work_and_die(scene, 1, after=True)
    with patch("ductor.app.ai_steps.Journal.open", _blind):
        scene.settle()
    assert [fault for fault in scene.faults if "ran after its end" in fault]


def _blind(journal: Journal, run_id: str, node: str, opens: str, attempt: int) -> Conversation:
    """Reads the first turn only."""
    return Conversation(run_id, node, 1, opens, journal.entries(run_id, node, 1)[:1])


def _talkative(rng: random.Random, number: int) -> Definition:
    """A chain of steps that ask models."""
    refs = "abc"[: rng.randint(1, 3)]
    kinds = [rng.choice((StepType.AI_AGENT, StepType.AI_AGENT, StepType.AI_ACTION)) for _ in refs]
    steps = tuple(ai_step(rng, kind, {"ref": ref}) for ref, kind in zip(refs, kinds, strict=True))
    edges = tuple(edge(one, two, rng.choice((EdgeType.SUCCESS, EdgeType.DONE))) for one, two in pairwise(refs))
    return Definition(family_slug=f"f{number}", steps=steps, edges=edges)


def test_random_faults_repeat_only_calls_that_were_under_way() -> None:
    """Each world is checked for calls that ran after their end."""
    calls = 0
    with patch("ductor.testing.seeds.random_definition", _talkative):
        for seed in range(500_000, 500_080):
            calls += len(run_seed(seed, "storm").ledger.tool_calls)
    assert calls > 50


def read_by_the_model(**args: Any) -> Any:
    """The rendered args of an attempt, with `TRIGGER.payload` = {"n": 1, "who": "you"}."""
    given = {"model": "m", "max_tokens": 100, **args}
    scene = Scene(flow(Step(ref="a", type=StepType.AI_ACTION, args=given)), {"n": 1, "who": "you", "none": None})
    scene.settle()
    rows = scene.world.attempts(scene.run_id)
    return scene.world.value(scene.run_id, rows[0].task.input) if rows else scene.world.state(scene.run_id).error


def test_texts_are_rendered_and_values_become_json() -> None:
    messages = [{"role": "user", "content": "${{ TRIGGER.payload }}"}, {"role": "assistant", "content": "hi"}]
    args = read_by_the_model(
        model="${{ TRIGGER.payload.who }}-1", system="be ${{ TRIGGER.payload.n }}", messages=messages
    )
    assert (args["model"], args["system"]) == ("you-1", "be 1")
    assert [one["content"] for one in args["messages"]] == ['{"n":1,"who":"you","none":null}', "hi"]


def test_what_is_no_text_of_the_conversation_stands_as_it_is() -> None:
    schema = {"type": "object", "description": "no ${{ template }}"}
    assert read_by_the_model(prompt="${{ TRIGGER.payload.n }}", output_schema=schema) == {
        "model": "m",
        "max_tokens": 100,
        "prompt": "1",
        "output_schema": schema,
    }


def test_a_text_that_is_null_fails_the_step() -> None:
    assert read_by_the_model(prompt="${{ TRIGGER.payload.none }}").code == "EXPRESSION_ERROR"
