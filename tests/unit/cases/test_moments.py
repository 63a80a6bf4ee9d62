"""What happens in a case: decisions, events, signals, controls, further runs, and a clock that is skipped."""

from __future__ import annotations

import textwrap

import pytest
from tests.unit.cases.bench import FLOW, SHORT, failed, one, run

CALL = "given: {steps: {call: {output: {}}}}\n"


def test_a_month_passes_in_no_time() -> None:
    result = one(
        CALL
        + """
when:
- approve: ask
- advance: 29d
- expect: {status: waiting, nodes: {rest: waiting}}
- advance: 1d
- expect: {nodes: {rest: completed, told: waiting}}
- publish: {event: told, key: k, matched: 1}
then: {path: [call, ask, rest, told, end]}
"""
    )

    assert result.findings == ()
    assert result.took_ms < 5_000


def test_the_clock_stands_at_the_given_moment() -> None:
    flow = SHORT.replace("family_slug: short", "family_slug: short\noutput: {at: '${{ RUN.started_at }}'}")
    given = "given: {now: '2027-05-01T10:00:00+02:00', steps: {call: {}}}\n"

    assert one(given + "then: {output: {at: '2027-05-01T08:00:00.000Z'}}", flow).findings == ()


def test_until_names_a_moment_and_not_one_that_is_over() -> None:
    case = CALL + "when: [{approve: ask}, {until: '2026-02-01T00:00:00Z'}, {expect: {nodes: {told: waiting}}}]\n"

    assert one(case + "then: {status: waiting}").findings == ()
    assert failed(case.replace("2026-02", "2025-02"))["when[1].until"][0] == "a moment that is still to come"


def test_who_is_not_in_the_audience_is_refused() -> None:
    refused = CALL + "when:\n- reach: ask\n- approve: {step: ask, by: {roles: [clerk], user: bob}}\n"

    assert one(refused + "  refused: AUDIENCE_MISMATCH\nthen: {status: waiting}").findings == ()
    assert failed(refused)["when[1].approve"][1].startswith("refused with AUDIENCE_MISMATCH: ")


def test_a_refusal_that_does_not_come_is_a_failure() -> None:
    case = CALL + "when:\n- reach: ask\n- approve: ask\n  refused: AUDIENCE_MISMATCH\nthen: {status: waiting}"

    assert failed(case) == {"when[1].refused": ("refused with AUDIENCE_MISMATCH", "accepted")}


def test_a_step_that_will_never_wait_cannot_be_decided() -> None:
    found = failed(CALL + "when: [{reject: ask}, {resolve: rest}]\nthen: {status: completed}")

    refusal = "refused with NOT_WAITING: the run has ended as completed without ever asking rest"
    assert found == {"when[1].resolve": ("accepted", refusal)}


def test_a_step_that_does_not_come_to_wait_is_told_with_what_the_run_waits_for() -> None:
    found = failed(CALL + "when: [{approve: ask}, {resolve: end}]\nthen: {status: waiting}")

    assert found == {"when[1].resolve": ("end waits", "end is pending, the run waiting")}


def test_a_wait_is_resolved_by_hand() -> None:
    case = CALL + "when: [{approve: ask}, {resolve: rest}, {resolve: {step: told, payload: {by: hand}}}]\n"

    assert one(case + "then: {nodes: {end: completed, told: {output: {by: hand}}}}").findings == ()


def test_a_step_is_resolved_with_an_error() -> None:
    case = CALL + "when: [{approve: ask}, {resolve: {step: rest, error: {code: GIVEN_UP, message: enough}}}]\n"

    assert one(case + "then: {error: GIVEN_UP}").findings == ()


def test_an_event_with_another_key_matches_nothing() -> None:
    case = CALL + "when: [{approve: ask}, {reach: told}, {publish: {event: told, key: x, matched: 1}}]\n"

    assert failed(case + "then: {status: waiting}") == {"when[2].publish.matched": ("1 waiting steps", "0")}


def test_a_signal_reaches_the_step_of_its_name() -> None:
    case = CALL + "when: [{approve: ask}, {reach: told}, {signal: {name: told, payload: {a: 1}}}]\n"

    assert one(case + "then: {nodes: {told: {output_contains: {payload: {a: 1}}}}}").findings == ()


@pytest.mark.parametrize(("control", "status"), [("cancel", "cancelled"), ("terminate", "terminated")])
def test_a_run_is_ended(control: str, status: str) -> None:
    assert one(CALL + f"when: [{{reach: ask}}, {control}]\nthen: {{status: {status}}}").findings == ()


def test_a_paused_run_does_nothing_until_it_is_resumed() -> None:
    case = CALL + "when: [{approve: ask}, pause, {advance: 40d}, {expect: {status: paused}}, resume]\n"

    assert one(case + "then: {status: waiting, nodes: {rest: completed, told: waiting}}").findings == ()


def test_a_step_is_paused_and_resumed() -> None:
    given = "given: {steps: {call: [{error: X}, {output: {}}]}}\n"
    when = "when: [{pause: call}, {advance: 1d}, {expect: {nodes: {call: paused}}}, {resume: call}]"

    assert one(given + when, SHORT).findings == ()


def test_a_failed_run_is_redriven() -> None:
    case = "given: {steps: {call: [{error: {code: X, retryable: false}}, {output: {}}]}}\nwhen: [redrive]\n"

    assert one(case + "then: {nodes: {call: {status: completed, attempts: 2}}}", SHORT).findings == ()


def test_several_runs_have_names() -> None:
    case = CALL + "when: [{trigger: {as: second}}, {approve: ask, run: second}]\n"
    then = "then: {status: failed, error: APPROVAL_TIMEOUT, runs: {second: {status: waiting, nodes: {told: waiting}}}}"

    assert one(case + then).findings == ()


def test_a_run_that_nobody_started_cannot_be_addressed() -> None:
    found = failed(CALL + "when: [{approve: ask, run: second}]\nthen: {status: waiting}")

    assert found == {"when[0].run": ("a run that a moment started", "second")}


def test_a_trigger_may_be_expected_to_be_refused() -> None:
    flow = SHORT + "input_schema: {type: object, required: [id]}\n"

    assert one("refused: INPUT_INVALID", flow).findings == ()
    assert failed("given: {input: {id: 1}, steps: {call: {}}}\nrefused: INPUT_INVALID", flow) == {
        "refused": ("a trigger refused with INPUT_INVALID", "accepted")
    }
    assert failed("given: {steps: {call: {}}}", flow)["given"][0] == "a trigger that is accepted"


def test_where_the_test_expects_a_waiting_run_no_time_passes() -> None:
    assert one(CALL + "then: {status: waiting, nodes: {ask: waiting}}", FLOW).findings == ()


STARTED = """
family_slug: started
triggers: [{patterns: [order.*], condition: EVENT.payload.n > 1, input: "${{ EVENT.payload }}"}]
steps: [{ref: say, type: dataflow, args: {operation: project, project: {n: TRIGGER.payload.n}}}]
output: ${{ STEPS.say.output.result }}
"""


def test_an_event_starts_runs_that_get_names() -> None:
    case = "given: {input: {n: 0}}\nwhen: [{publish: {event: order.paid, payload: {n: 2}, starts: [second]}}]\n"

    assert one(case + "then: {output: {n: 0}, runs: {second: {output: {n: 2}}}}", STARTED).findings == ()


def test_an_event_that_starts_nothing_is_said() -> None:
    case = "given: {input: {n: 0}}\nwhen: [{publish: {event: order.paid, payload: {n: 1}, starts: [second]}}]\n"

    assert failed(case, STARTED) == {"when[0].publish.starts": ("1 runs that the event starts", "0")}


def test_a_run_that_goes_on_as_a_new_one_is_looked_at_by_its_name() -> None:
    case = CALL + "when:\n- reach: ask\n- continue_as_new: {as: next, context: {page: 2}}\n- reject: ask\n  run: next\n"

    assert one(case + "then: {status: continued_as_new, runs: {next: {nodes: {ask: completed}}}}").findings == ()


def test_the_name_of_a_run_is_given_once() -> None:
    case = CALL + "when:\n- reach: ask\n- trigger: {as: next}\n- continue_as_new: {as: next}\n"

    assert failed(case + "then: {status: waiting}") == {
        "when[2].continue_as_new.as": ("a name of its own", "next is taken")
    }


def test_a_tuned_timeout_ends_a_wait() -> None:
    waits, tuned = "- advance: 2h\n- expect: {nodes: {ask: waiting}}\n", "- tune: {step: ask, timeout: 1h}\n"
    case = CALL + "when:\n- reach: ask\n"

    assert one(case + waits + "then: {status: waiting}").findings == ()
    assert failed(case + tuned + waits + "then: {status: failed}") == {
        "when[3].expect.nodes.ask": ("waiting", "failed (APPROVAL_TIMEOUT: nobody decided within 3600000 ms)")
    }


DAILY = """
family_slug: daily
schedule: {cron: "0 9 * * *", input: {kind: report}}
steps:
  - {ref: shape, type: dataflow, args: {operation: project, input_expr: TRIGGER.payload, project: {kind: INPUT.kind}}}
  - {ref: rest, type: wait, args: {duration: 30h}}
output: {kind: "${{ STEPS.shape.output.result.kind }}"}
edges: [{source_ref: shape, target_ref: rest}]
"""
"""Every morning at nine; a run takes 30 hours, so every second morning is skipped."""

NINE = "2026-01-0{}T09:00:00Z"


def test_the_run_under_test_may_be_that_of_a_schedule() -> None:
    case = "given: {{scheduled_at: {}}}\nthen: {{output: {{kind: report}}, check: [\"RUN.status == 'completed'\"]}}"

    assert one(case.format(NINE.format(3)), DAILY).findings == ()


def test_a_schedule_fires_at_its_instants_and_skips_what_overlaps() -> None:
    case = f"""
    given: {{scheduled_at: {NINE.format(1)}}}
    when:
      - fire: {{at: {NINE.format(2)}, outcome: skipped}}
      - expect: {{status: waiting}}
      - fire: {{at: {NINE.format(3)}, as: third}}
      - expect: {{status: completed}}
    then: {{runs: {{third: {{output: {{kind: report}}}}}}}}
    """

    assert one(case, DAILY).findings == ()
    body = textwrap.indent(textwrap.dedent(case).strip(), "    ")
    crashing = f"faults: {{crash: random, seeds: 4}}\ncases:\n  - name: one\n{body}"
    assert [result.findings for result in run(crashing, DAILY).cases] == [()]


def test_what_a_schedule_did_otherwise_is_said() -> None:
    case = "given: {{scheduled_at: {}}}\nwhen: [{{fire: {{at: {}, as: x}}}}]\nthen: {{status: waiting}}"
    found = failed(case.format(NINE.format(1), NINE.format(2)), DAILY)

    assert found["when[0].fire"][0] == "fired"
    assert found["when[0].fire"][1].startswith("skipped (")


@pytest.mark.parametrize(
    ("at", "told"),
    [
        (
            "2026-01-03T10:00:00Z",
            "none; after it come 2026-01-04T09:00:00Z, 2026-01-05T09:00:00Z, 2026-01-06T09:00:00Z",
        ),
        (
            "2025-12-31T09:00:00Z",
            "none; after it come 2026-01-01T09:00:00Z, 2026-01-02T09:00:00Z, 2026-01-03T09:00:00Z",
        ),
    ],
)
def test_an_instant_that_is_none_of_the_schedule_is_said_with_the_next(at: str, told: str) -> None:
    case = f"given: {{scheduled_at: {at}}}\nthen: {{status: waiting}}"

    assert failed(case, DAILY) == {"given.at": ("an instant of the schedule of daily", told)}


def test_a_workflow_without_a_schedule_fires_nothing() -> None:
    case = CALL + f"when: [{{fire: {{at: {NINE.format(1)}}}}}]\nthen: {{status: waiting}}"

    assert failed(case) == {"when[0].fire": ("a workflow with a schedule", "flow has none")}


def test_a_case_that_names_no_instant_sees_no_schedule_run() -> None:
    case = "given: {input: {kind: mine}}\nwhen: [{advance: 10d}]\nthen: {output: {kind: mine}}"

    assert one(case, DAILY).findings == ()


def test_a_scheduled_run_takes_no_input_of_the_test() -> None:
    result = run(f"cases: [{{name: one, given: {{scheduled_at: {NINE.format(1)}, input: {{}}}}}}]", DAILY)

    assert "leave input out" in result.findings[0].actual


TWO = """
family_slug: two
steps:
  - {ref: first, type: action, action: http.request, args: {url: "https://x.example.com/"}}
  - {ref: second, type: action, action: http.request, args: {url: "https://y.example.com/"}}
edges: [{source_ref: first, target_ref: second}]
"""
FAILING = "given: {steps: {first: {output: {n: 1}}, second: [{error: {code: DOWN, retryable: false}}, {output: {}}]}}\n"


@pytest.mark.parametrize(("point", "first"), [("after: first", 1), ("before: second", 1), ("before: first", 2)])
def test_a_reset_run_goes_on_from_a_point_of_its_history(point: str, first: int) -> None:
    case = FAILING + f"when:\n- reach: {{step: second, status: failed}}\n- reset: {{as: again, {point}}}\n"
    runs = "then: {error: DOWN, runs: {again: {nodes: {second: completed}}}}"

    assert one(case + runs, TWO).findings == ()
    assert one(case.replace("DOWN", "GONE") + runs.replace("DOWN", "GONE"), TWO).findings == ()
    calls = f"then: {{error: DOWN, runs: {{again: {{calls: [{{step: first, times: {first - 1}}}]}}}}}}"
    assert one(case + calls, TWO).findings == ()


def test_a_reset_without_a_point_begins_anew_with_other_args() -> None:
    case = FAILING + (
        "when:\n- reach: {step: second, status: failed}\n"
        '- reset: {as: again, input: {first: {url: "https://z.example.com/"}}}\n'
        "then: {error: DOWN, runs: {again: {calls: [{step: first, args_contain: {url: https://z.example.com/}}]}}}"
    )

    assert one(case, TWO).findings == ()


def test_a_point_that_has_not_come_is_said() -> None:
    case = CALL + "when:\n- reach: ask\n- reset: {as: again, after: ask}\nthen: {status: waiting}"

    assert failed(case) == {"when[1].reset.after": ("a step that has ended by now", "ask")}


def test_a_reset_of_a_step_is_still_a_word() -> None:
    case = CALL + "when:\n- reach: ask\n- reset: ask\n- reject: ask\n"

    assert one(case + "then: {nodes: {ask: completed}}").findings == ()
