"""Mocks: which one answers, in which order, with what; and what happens where there is none."""

from __future__ import annotations

from tests.unit.cases.bench import SHORT, failed, one, run

from ductor.testing.cases.results import Verdict

LIST = """
family_slug: list
steps:
  - {ref: each, type: scatter, args: {items_expr: 'TRIGGER.payload.items', tolerated_failures: 100%}}
  - {ref: work, type: action, action: http.request, args: {url: "https://x.example.com/${{ ITEM }}"}}
  - {ref: all, type: gather, args: {}}
edges:
  - {source_ref: each, target_ref: work}
  - {source_ref: work, target_ref: all}
output: ${{ STEPS.all.output.results }}
"""

PARENT = """
family_slug: parent
steps:
  - {ref: child, type: subworkflow, args: {family_slug: short, input: {n: 7}}}
"""


def test_replies_come_in_order_and_the_last_one_repeats() -> None:
    given = "given: {input: {items: [a, b, c]}, steps: {work: [{output: {n: 1}}, {output: {n: 2}}]}}\n"

    assert one(given + "then: {output: [{n: 1}, {n: 2}, {n: 2}]}", LIST).findings == ()


def test_one_item_has_a_mock_of_its_own() -> None:
    given = (
        "given: {input: {items: [a, b]}, steps: {work: {output: {}}, work@1: {error: {code: X, retryable: false}}}}\n"
    )

    assert one(given + "then: {nodes: {work@0: completed, work@1: failed}, output: [{}, null]}", LIST).findings == ()


def test_a_step_goes_before_its_action() -> None:
    given = "given: {actions: {http.request: {output: {by: action}}}, steps: {call: {output: {by: step}}}}\n"

    assert one(given + "then: {output: {call: {by: step}}}", SHORT).findings == ()
    without = "given: {actions: {http.request: {output: {by: action}}}}\nthen: {output: {call: {by: action}}}"
    assert one(without, SHORT).findings == ()


def test_an_output_may_read_the_arguments_the_turn_and_the_input() -> None:
    given = """given:
  input: {items: [a, b]}
  steps: {work: {output: {url: "${{ INPUT.url }}", turn: "${{ INDEX }}", of: "${{ size(TRIGGER.payload.items) }}"}}}
"""
    outputs = "[{url: 'https://x.example.com/a', turn: 0, of: 2}, {url: 'https://x.example.com/b', turn: 1, of: 2}]"

    assert one(given + f"then: {{output: {outputs}}}", LIST).findings == ()


def test_an_error_that_is_not_retryable_ends_the_step_at_once() -> None:
    given = "given: {steps: {call: {error: {code: GONE, message: it is gone, retryable: false}}}}\n"
    then = "then: {error: {code: GONE, message_contains: is gone}, nodes: {call: {attempts: 1}}}"

    assert one(given + then, SHORT).findings == ()


def test_a_delay_runs_into_the_timeout_of_the_step() -> None:
    flow = SHORT.replace("retry_max_attempts: 3", "timeout_ms: 5000")

    assert one("given: {steps: {call: {output: {}, delay: 4s}}}", flow).findings == ()
    late = "given: {steps: {call: {output: {}, delay: 6s}}}\nthen: {nodes: {call: timed_out}, error: ATTEMPT_TIMEOUT}"
    assert one(late, flow).findings == ()


def test_arguments_are_checked_as_the_action_would() -> None:
    flow = SHORT.replace('url: "https://x.example.com/"', "url: '${{ TRIGGER.payload.url }}'")

    given = "given: {input: {url: 3}, steps: {call: {output: {}}}}\nthen: {error: ACTION_ARGS_INVALID}"
    assert one(given, flow).findings == ()


def test_an_action_without_a_mock_is_never_called() -> None:
    result = one("then: {status: failed}", SHORT)

    assert result.verdict is Verdict.FAILED
    assert result.findings[0].actual == "step call called http.request, which no mock answers"


def test_actions_that_reach_nothing_run_as_they_are() -> None:
    echo = SHORT.replace("http.request", "core.echo")
    sleep = "family_slug: s\nsteps: [{ref: nap, type: action, action: core.sleep, args: {duration: 10m}}]"

    assert one("then: {output: {call: {url: 'https://x.example.com/'}}}", echo).findings == ()
    waits = "when: [{advance: 9m}, {expect: {nodes: {nap: running}}}]\nthen: {output: {nap: {slept_ms: 600000}}}"
    assert one(waits, sleep).findings == ()


def test_a_template_that_fails_is_said() -> None:
    found = failed('given: {steps: {call: {output: {v: "${{ INPUT.nope }}"}}}}\nthen: {status: failed}', SHORT)

    assert found["given"][1].startswith("the mock steps.call cannot be evaluated: ")


def test_names_that_lead_nowhere_are_faults() -> None:
    found = failed("given: {steps: {cal: {}}, actions: {http.reqest: {}}}\nthen: {calls: [{step: x, times: 0}]}", SHORT)

    assert found == {
        "given.steps.cal": ("a step", "no such step: cal"),
        "given.actions.http.reqest": ("an action", "no such action: http.reqest"),
        "then.calls[0].step": ("a step", "no such step: x"),
    }


def test_a_child_workflow_is_mocked_whole() -> None:
    given = "given: {workflows: {short: {output: {got: '${{ INPUT.n }}'}}}}\n"

    assert one(given + "then: {nodes: {child: {output: {got: 7}}}}", PARENT).findings == ()


def test_a_child_workflow_is_taken_from_its_file() -> None:
    cases = """
workflows: [short.yaml]
cases:
  - name: one
    given: {steps: {short/call: {output: {from: child}}}}
    then:
      output: {child: {call: {from: child}}}
      children: {child: {path: [call], calls: [{action: http.request, times: 1}]}}
"""
    result = run(cases, PARENT, short=SHORT)

    assert [case.findings for case in result.cases] == [()]


def test_a_child_that_is_neither_is_said_with_what_to_do() -> None:
    result = one("then: {status: completed}", PARENT)

    assert result.verdict is Verdict.ERROR
    assert result.findings[0].actual.endswith("(give its file under `workflows`, or mock it under `given.workflows`)")


def test_what_every_case_is_given_is_merged_by_name() -> None:
    cases = """
given:
  input: {items: [a]}
  steps: {work: {output: {n: 1}}}
cases:
  - name: as the file says
    then: {output: [{n: 1}]}
  - name: other input
    given: {input: {items: []}}
    then: {output: []}
  - name: other mock
    given: {steps: {work: {output: {n: 2}}}}
    then: {output: [{n: 2}]}
"""
    assert [case.verdict for case in run(cases, LIST).cases] == [Verdict.PASSED] * 3


def test_connections_that_a_step_names_are_there() -> None:
    flow = SHORT.replace("action: http.request", "action: slack.post_message, connection_ref: team").replace(
        'url: "https://x.example.com/"', "channel: C, text: hello"
    )

    assert one("given: {steps: {call: {output: {ok: true}}}}", flow).findings == ()


def test_variables_of_the_trigger_and_of_the_environment() -> None:
    flow = (
        SHORT
        + "variables: {a: 1, b: {default: 2, overridable: true}}\noutput: {a: '${{ VARS.a }}', b: '${{ VARS.b }}'}"
    )
    given = "given: {variables: {b: 5}, environment: {a: 4}, steps: {call: {}}}\n"

    assert one(given + "then: {output: {a: 4, b: 5}}", flow).findings == ()


ASKING = """
family_slug: asking
steps:
  - ref: sort
    type: ai_action
    args:
      {model: m, prompt: p, max_tokens: 9,
       output_schema: {type: object, required: [queue], properties: {queue: {enum: [a]}}}}
"""


def test_a_model_is_mocked_with_an_answer_that_fits_its_schema() -> None:
    assert one("given: {steps: {sort: {output: {object: {queue: a}}}}}", ASKING).findings == ()
    for output in ("{object: {queue: b}}", "{text: a}", "{}"):
        found = failed(f"given: {{steps: {{sort: {{output: {output}}}}}}}\nthen: {{status: failed}}", ASKING)
        assert found["given"][1].startswith("the mock of sort gives no `object` that fits the output_schema: answer")


WORKED = """
family_slug: worked
steps: [{ref: render, type: bridge, retry_max_attempts: 2, args: {task_type: image.render, input: {n: 1}}}]
"""


def test_a_worker_outside_is_mocked_by_step_or_by_type_of_task() -> None:
    assert one("given: {steps: {render: {output: {n: '${{ INPUT.n }}'}, delay: 2h}}}", WORKED).findings == ()
    assert one("given: {actions: {image.render: [{error: X}, {output: {}}]}}", WORKED).findings == ()


def test_without_a_mock_a_task_waits_for_its_worker() -> None:
    waits = "{advance: 9d}, {expect: {nodes: {render: scheduled}}}"
    case = f"when: [{waits}, {{resolve: {{step: render, payload: {{by: hand}}}}}}]\n"

    assert one(case + "then: {output: {render: {by: hand}}}", WORKED).findings == ()
