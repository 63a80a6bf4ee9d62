"""Faults: they strike, they change nothing that was promised, they repeat by their seed, and a broken engine shows."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import pytest
from tests.unit.cases.bench import FLOW, SHORT, run

from ductor.app.commit import Outcome
from ductor.app.coordinator import Coordinator
from ductor.model.intent import Intent
from ductor.model.run import RunState
from ductor.testing.cases.document import Faults
from ductor.testing.cases.results import Verdict
from ductor.testing.cases.runner import Options

CASE = """
cases:
  - name: one
    given: {steps: {call: [{error: X}, {output: {}, delay: 5s}]}}
    when: [{approve: ask}, {reach: told}, {publish: {event: told, key: k, matched: 1}}]
    then: {path: [call, ask, rest, told, end], nodes: {call: {attempts: 2}}, calls: [{step: call, times: 2}]}
"""
"""Everything in one: a retry, a decision, a month, an event."""


_tick_once = Coordinator._tick_once


def forgetful(self: Coordinator, state: RunState, intents: list[Intent]) -> Any:
    """An engine that trusts its memory: what a tick committed and could not send any more is never sent."""
    fresh = [intent for intent in intents if intent.id not in state.last.applied]
    return _tick_once(self, state, fresh) if fresh else (Outcome.NOTHING, state)


@pytest.mark.parametrize("faults", ["crash: random", "duplicates: true", "delays: true"])
def test_a_workflow_is_the_same_with_faults(faults: str) -> None:
    case = run(f"faults: {{{faults}, seeds: 15}}\n{CASE}").cases[0]

    assert (case.findings, case.plays) == ((), 16)
    assert (case.crashes > 15) == (faults == "crash: random")


def test_a_crash_costs_no_time() -> None:
    cases = """
faults: {crash: random, seeds: 15}
cases:
  - name: one
    given: {steps: {call: {output: {}}}}
    when: [{approve: ask}, {advance: 2591999999ms}, {expect: {nodes: {rest: waiting}}}, {advance: 1ms}]
    then: {status: waiting, nodes: {rest: completed}}
"""
    assert run(cases).cases[0].findings == ()


def test_a_case_may_want_other_faults_than_its_file() -> None:
    cases = """
faults: {crash: random, seeds: 3}
cases:
  - {name: as the file says, given: {steps: {call: {}}}}
  - {name: none, given: {steps: {call: {}}}, faults: {}}
  - {name: more, given: {steps: {call: {}}}, faults: {duplicates: true, seeds: 7}}
"""
    assert [case.plays for case in run(cases, SHORT).cases] == [4, 1, 8]


def test_the_command_may_want_faults_where_the_file_wants_none() -> None:
    options = Options(faults=Faults(crash="random"), seeds=4)

    assert run(CASE, options=options).cases[0].plays == 5


def test_a_broken_engine_fails_the_test_and_its_seed_repeats_it() -> None:
    with patch.object(Coordinator, "_tick_once", forgetful):
        found = run(f"faults: {{crash: random, seeds: 50}}\n{CASE}").cases[0]
        assert (found.verdict, found.seed is None) == (Verdict.FAILED, False)
        again = run(f"faults: {{crash: random}}\n{CASE}", options=Options(seed=found.seed)).cases[0]

    assert (again.findings, again.plays) == (found.findings, 1)
    assert run(f"faults: {{crash: random}}\n{CASE}", options=Options(seed=found.seed)).cases[0].findings == ()


def test_plays_repeat_exactly() -> None:
    first, second = (run(f"faults: {{crash: random, seeds: 5}}\n{CASE}", FLOW).cases[0] for _ in range(2))

    assert first.crashes == second.crashes
