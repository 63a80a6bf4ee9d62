"""The parts of the console that compute, in the browser that runs them."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import Page
from tests.console.conftest import OpenPage

pytestmark = pytest.mark.browser


@pytest.fixture
def page(open_page: OpenPage) -> Page:
    return open_page(signed_in=False)


def run(page: Page, module: str, code: str) -> Any:
    """The value of `code` with the module's exports as `m`."""
    return page.evaluate(f"async () => {{ const m = await import('./js/{module}'); return ({code}); }}")


def test_durations_read_as_people_say_them(page: Page) -> None:
    code = "[0, 840, 2449, 59999, 200000, 3600000, 18720000, 277200000, null, -1500].map(m.duration)"
    expected = ["0 ms", "840 ms", "2.4 s", "59 s", "3m 20s", "1h", "5h 12m", "3d 5h", "", "-1.5 s"]
    assert run(page, "format.js", code) == expected


def test_times_read_relative_to_now(page: Page) -> None:
    at = "new Date(Date.UTC(2026, 5, 1) + ms).toISOString()"
    times = "[-1000, -40000, -240000, 7200000, 86399000, -86400000 * 3]"
    code = f"{times}.map((ms) => m.relative({at}, Date.UTC(2026, 5, 1)))"
    assert run(page, "format.js", code) == ["just now", "40 s ago", "4 min ago", "in 2 h", "in 24 h", "3 d ago"]


def test_sizes_and_sums(page: Page) -> None:
    assert run(page, "format.js", "[0, 999, 8192, 999600, 3400000].map(m.bytes)") == [
        "0 B",
        "999 B",
        "8.2 KB",
        "1.0 MB",
        "3.4 MB",
    ]
    assert run(page, "format.js", "[0, 0.0000507, 1.5].map((sum) => m.money(sum))") == [
        "0 USD",
        "0.000051 USD",
        "1.50 USD",
    ]


def test_polling_slows_down_while_nothing_changes(page: Page) -> None:
    code = "[0, 1, 2, 10].map((quiet) => m.nextDelay(quiet, {fastest: 1000, slowest: 15000}))"
    assert run(page, "poll.js", code) == [1000, 1500, 2250, 15000]


def test_polling_ends_when_it_is_done_and_begins_anew_when_it_is_asked_to(page: Page) -> None:
    code = """await new Promise((resolve) => {
      let looks = 0;
      const polled = m.poll(async () => {
        looks += 1;
        if (looks === 3) setTimeout(() => resolve([looks]), 60);
        return looks < 3 ? "changed" : "done";
      }, {fastest: 1});
    })"""
    assert run(page, "poll.js", code) == [3]


def test_polling_stops_for_good(page: Page) -> None:
    code = """await new Promise((resolve) => {
      let looks = 0;
      const polled = m.poll(async () => { looks += 1; return "changed"; }, {fastest: 1});
      setTimeout(() => { polled.stop(); const then = looks; setTimeout(() => resolve(looks - then), 60); }, 30);
    })"""
    assert run(page, "poll.js", code) <= 1


def test_a_second_of_work_shows_beside_a_week_of_waiting(page: Page) -> None:
    code = """(() => {
      const week = 604800000;
      const scale = m.compressedScale(0, week, [0, 500, 1000, week]);
      const places = [0, 500, 1000, week].map(scale.at);
      const back = Math.round(scale.time(places[1]));
      return [m.evenScale(0, week).at(1000) < 0.01, places[2] > 0.3, places[0], places[3], back];
    })()"""
    assert run(page, "run/scale.js", code) == [True, True, 0, 1, 500]


def test_addresses_hold_filters_and_give_them_back(page: Page) -> None:
    code = """(() => {
      const address = m.href("/runs", {status: "failed", q: "a&b=c ?", "label.customer": "x", empty: null});
      return [address, m.readHash(address)];
    })()"""
    address, back = run(page, "router.js", code)
    assert address == "#/runs?status=failed&q=a%26b%3Dc+%3F&label.customer=x"
    assert back == {"path": "/runs", "query": {"status": "failed", "q": "a&b=c ?", "label.customer": "x"}}


def test_paths_find_their_route(page: Page) -> None:
    code = """["/runs", "/runs/a%2Fb", "/runs/a/b", "/%"].map((path) => {
      const found = m.match([{pattern: "/runs"}, {pattern: "/runs/:run"}], path);
      return found && [found.route.pattern, found.params];
    })"""
    assert run(page, "router.js", code) == [["/runs", {}], ["/runs/:run", {"run": "a/b"}], None, None]


def test_listeners_are_functions_and_text_stays_text(page: Page) -> None:
    code = """(() => {
      const element = m.h("p", {title: "<b>"}, "<i>", ["a", null, [1]], false);
      let refused = false;
      try { m.h("p", {onclick: "alert(1)"}); } catch { refused = true; }
      return [element.childElementCount, element.textContent, element.title, refused];
    })()"""
    assert run(page, "dom.js", code) == [0, "<i>a1", "<b>", True]


def test_controls_are_offered_by_the_state(page: Page) -> None:
    code = """["waiting", "paused", "cancelling", "failed", "completed"].map((status) =>
      Object.entries(m.allowed({status, stalled: null})).filter(([, why]) => why === null).map(([name]) => name))"""
    assert run(page, "run/controls.js", code) == [
        ["pause", "cancel", "terminate", "signal", "continueAsNew", "reset"],
        ["resume", "cancel", "terminate", "signal", "continueAsNew", "reset"],
        ["terminate", "signal", "reset"],
        ["redrive", "reset"],
        ["reset"],
    ]


def test_an_edge_counts_as_taken_by_what_its_ends_became(page: Page) -> None:
    code = """[
      [{type: "success"}, {status: "completed"}, {status: "running"}],
      [{type: "error"}, {status: "completed"}, {status: "running"}],
      [{type: "true"}, {status: "completed", latest_output_json: '{"value":false}'}, {status: "completed"}],
      [{type: "success"}, {status: "running"}, {status: "pending"}],
      [{type: "success"}, {status: "completed"}, {status: "skipped"}],
    ].map((one) => m.taken(...one) ?? null)"""
    assert run(page, "run/overlay.js", code) == [True, False, False, None, False]


def test_the_history_says_which_edges_were_taken(page: Page) -> None:
    """Of two edges into one step, both of which could have led there, the one that did."""
    code = """(() => {
      const graph = {groups: [], nodes: ["a", "b", "c"].map((id) => ({id, type: "action"})), edges: [
        {source: "a", target: "c", type: "success"}, {source: "b", target: "c", type: "success"}]};
      const nodes = Object.fromEntries(["a", "b", "c"].map((id) => [id, {status: "completed"}]));
      const told = new Map([["a", new Set()], ["b", new Set(["success>c"])]]);
      return [null, told].map((history) => m.overlay(graph, nodes, new Map(), history).edges.map((edge) => edge.taken));
    })()"""
    assert run(page, "run/overlay.js", code) == [[True, True], [False, True]]


def test_large_whole_numbers_are_carried_as_they_were_written(page: Page) -> None:
    text = '{"a":9007199254740993,"b":[-9223372036854775808,1e300,0.1,42],"c":"12345678901234567890"}'
    code = f"""(() => {{
      const value = m.parseJson({text!r});
      const words = [JSON.stringify(value), String(value.a), `${{value.b[0]}}`];
      return [...words, value.a > 9007199254740990, m.isLeaf(value.a), m.isLeaf(value.b)];
    }})()"""
    written = text.replace("1e300", "1e+300")
    assert run(page, "exact.js", code) == [written, "9007199254740993", "-9223372036854775808", True, True, False]


def test_facts_of_an_input_stand_on_one_line(page: Page) -> None:
    values = '[{invoice: "i-7", amount: 1200, lines: [1]}, {}, null, "text", {a: 1, b: 2, c: 3, d: 4, e: 5, f: 6}]'
    assert run(page, "operate/decision.js", f"{values}.map(m.factsOf)") == [
        "invoice: i-7 · amount: 1200 · lines: [1]",
        "empty",
        "null",
        "text",
        "a: 1 · b: 2 · c: 3 · d: 4 · e: 5 · …",
    ]


def test_a_batch_begins_with_the_control_that_fits(page: Page) -> None:
    states = '["failed", "timed_out", "paused", "waiting", undefined]'
    fits = run(page, "operate/batches.js", f"{states}.map((state) => m.fitting(state).id)")
    assert fits == ["redrive", "redrive", "resume", "pause", "pause"]


def test_the_history_says_how_many_items_a_scatter_has(page: Page) -> None:
    """Its output may be redacted, and only the first hundred items are read."""
    code = """(() => {
      const steps = [{id: "each", type: "scatter"}, {id: "a", type: "action"}];
      const graph = {groups: [{id: "each", members: ["a"], parent: null}], nodes: steps, edges: []};
      const nodes = {each: {status: "completed", latest_output_json: '{"count":"sha256:42c1"}'}};
      const items = new Map([["a", {nodes: {"a@0": {status: "completed"}}, more: true}]]);
      const badge = (counts) => m.overlay(graph, nodes, items, null, counts).groups[0].badge;
      return [badge(new Map()), badge(new Map([["each", 300]]))];
    })()"""
    assert run(page, "run/overlay.js", code) == ["1+ items", "300 items"]
