"""The layout of workflow graphs, in the browser that draws them, and what can be done with the drawing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import pytest
from playwright.sync_api import Browser, Page, expect
from tests.console.conftest import OpenPage, Shop

pytestmark = pytest.mark.browser

# What every layout must be: no two cards overlap, edges run down, the same graph gives the same picture.
JUDGE: Final = """
const {layout} = await import('./js/graph/layout.js');
const {graphOf} = await import('./js/graph/scopes.js');
const random = (seed) => () => (seed = (seed * 1103515245 + 12345) & 0x7fffffff) / 0x7fffffff;
const steps = (count) => Array.from({length: count}, (_, index) => ({id: `s${index}`, type: 'action'}));
const dag = (count, edges, seed, reach = count) => {
  const next = random(seed);
  const list = Array.from({length: edges}, (_, index) => {
    const from = Math.floor(next() * (count - 1));
    const to = Math.min(count - 1, from + 1 + Math.floor(next() * reach));
    return {source: `s${from}`, target: `s${to}`, type: index % 3 ? 'success' : 'error'};
  });
  return {nodes: steps(count), edges: list, groups: []};
};
const apart = (a, b) => a.x + a.width <= b.x + 0.01 || b.x + b.width <= a.x + 0.01
  || a.y + a.height <= b.y + 0.01 || b.y + b.height <= a.y + 0.01;
const judge = ({nodes, edges, groups}) => {
  const began = performance.now();
  const made = layout(nodes, edges, groups);
  const ms = performance.now() - began;
  const boxes = [...made.nodes.values()];
  const overlaps = boxes.flatMap((a, i) => boxes.slice(i + 1).filter((b) => !apart(a, b))).length;
  const rises = ({points}) => points.some((point, i) => i && point[1] < points[i - 1][1] - 0.01);
  const rising = made.edges.filter((edge) => !edge.backward && rises(edge));
  const loose = made.edges.filter(({index, points, backward}) => {
    const [from, to] = [made.nodes.get(edges[index].source), made.nodes.get(edges[index].target)];
    const [start, end] = backward ? [points.at(-1), points[0]] : [points[0], points.at(-1)];
    const [top, bottom] = backward ? [to, from] : [from, to];
    const beside = (x, box) => x < box.x - 0.01 || x > box.x + box.width + 0.01;
    const on = (point, box, y) => Math.abs(point[1] - y) < 0.01 && !beside(point[0], box);
    return !on(start, top, top.y + top.height) || !on(end, bottom, bottom.y);
  });
  const bends = ({points}) => new Set(points.slice(1, -1).map(([x]) => Math.round(x))).size;
  const crooked = made.edges.filter((edge) => edge.points.length > 4 && bends(edge) > 1).length;
  const live = nodes.map((node) => ({...node, status: 'running'}));
  const again = layout(live, edges.map((edge) => ({...edge, taken: true})), groups);
  const same = JSON.stringify([...again.nodes]) === JSON.stringify([...made.nodes]);
  const counts = {overlaps, rising: rising.length, loose: loose.length, crooked, drawn: made.edges.length};
  return {ms, ...counts, same, made};
};
"""


@pytest.fixture(scope="module")
def page(browser: Browser, counter: Shop) -> Iterator[Page]:
    """One page for all: what is tested here only computes."""
    opened = browser.new_page()
    opened.goto(counter.url)
    yield opened
    opened.close()


def judged(page: Page, graph: str) -> dict[str, Any]:
    code = f"async () => {{ {JUDGE} const {{made, ...found}} = judge({graph}); return found; }}"
    found: dict[str, Any] = page.evaluate(code)
    return found


@pytest.mark.parametrize("seed", range(1, 9))
def test_cards_stay_apart_and_edges_run_down(page: Page, seed: int) -> None:
    found = judged(page, f"dag({10 * seed}, {16 * seed}, {seed}, 8)")
    assert (found["overlaps"], found["rising"], found["loose"]) == (0, 0, 0)
    assert found["same"], "the same graph, with other states, must look the same"
    assert found["drawn"] == 16 * seed


def test_long_edges_are_straight(page: Page) -> None:
    assert judged(page, "dag(60, 90, 5, 20)")["crooked"] == 0


@pytest.mark.parametrize("reach", [500, 20])
def test_the_largest_definition_is_laid_out_soon(page: Page, reach: int) -> None:
    found = judged(page, f"dag(500, 5000, 3, {reach})")
    assert (found["overlaps"], found["rising"], found["loose"]) == (0, 0, 0)
    assert found["ms"] < 5000, "usually some 300 ms; the limit is for machines that do much else"


def test_circles_of_a_draft_are_drawn_as_such(page: Page) -> None:
    circle = (
        "{source: 'a', target: 'b'}, {source: 'b', target: 'c'}, {source: 'c', target: 'a'}, {source: 'b', target: 'b'}"
    )
    code = f"{{nodes: ['a', 'b', 'c'].map((id) => ({{id}})), edges: [{circle}], groups: []}}"
    found = page.evaluate(
        f"() => (async () => {{ {JUDGE} return judge({code}).made.edges.map((one) => one.backward); }})()"
    )
    assert found == [False, False, True]


NESTED: Final = """graphOf({
  steps: [
    ['S', 'scatter'], ['x', 'action'], ['T', 'scatter'], ['y', 'action'], ['z', 'action'],
    ['H', 'gather'], ['G', 'gather'], ['out', 'action'], ['failed', 'action'], ['beside', 'wait'],
  ].map(([ref, type]) => ({ref, type: `STEP_TYPE_${type.toUpperCase()}`})),
  edges: [
    ['S', 'x'], ['S', 'T'], ['x', 'T'], ['T', 'y'], ['T', 'z'], ['y', 'H'], ['z', 'H'], ['H', 'G'], ['G', 'out'],
    ['S', 'failed', 'EDGE_TYPE_ERROR'], ['beside', 'out'],
  ].map(([source_ref, target_ref, type]) => ({source_ref, target_ref, type})),
})"""


def test_the_bodies_of_nested_scatters_are_frames(page: Page) -> None:
    found = page.evaluate(f"""async () => {{ {JUDGE}
      const graph = {NESTED};
      const {{made, ...rest}} = judge(graph);
      const inside = (box, frame) => box.x >= frame.x && box.y >= frame.y
        && box.x + box.width <= frame.x + frame.width && box.y + box.height <= frame.y + frame.height;
      const within = (frame) => [...made.nodes].filter(([, box]) => !apart(box, frame))
        .map(([node, box]) => inside(box, frame) ? node : `cut ${{node}}`);
      const held = Object.fromEntries([...made.groups].map(([id, frame]) => [id, within(frame)]));
      const nested = inside(made.groups.get('T'), made.groups.get('S'));
      return {{groups: graph.groups, held, nested, ...rest}};
    }}""")
    assert [(one["id"], one["gather"], one["parent"]) for one in found["groups"]] == [("S", "G", None), ("T", "H", "S")]
    assert {name: set(held) for name, held in found["held"].items()} == {
        "S": {"x", "T", "y", "z", "H"},
        "T": {"y", "z"},
    }
    assert found["nested"]
    assert (found["overlaps"], found["rising"], found["loose"]) == (0, 0, 0)


@pytest.mark.parametrize(
    "document",
    [
        "null",
        "{steps: 'x', edges: 5}",
        "{steps: [null, 3, {ref: 'a'}, {ref: 'a'}, {type: 'wait'}], edges: [{source_ref: 'a', target_ref: 'b'}, 7]}",
        "{steps: [{ref: 's', type: 'scatter'}, {ref: 'a'}], edges: [{source_ref: 's', target_ref: 'a'}]}",
        "{steps: [{ref: 's', type: 'scatter'}, {ref: 'a'}, {ref: 'g', type: 'gather'}, {ref: 'o'}],"
        " edges: [['s', 'a'], ['a', 'g'], ['o', 'a']].map(([source_ref, target_ref]) => ({source_ref, target_ref}))}",
    ],
)
def test_half_typed_definitions_are_drawn_as_far_as_they_go(page: Page, document: str) -> None:
    code = f"async () => {{ {JUDGE} const graph = graphOf({document}); judge(graph); return graph.groups.length; }}"
    assert page.evaluate(code) == 0


def test_the_arrow_keys_follow_the_edges(open_page: OpenPage, counter: Shop) -> None:
    page = open_page(f"/definitions/{counter.orders}")
    first = page.locator(".graph-node[data-id=check]")
    expect(first).to_be_visible()
    first.focus()
    for key, ref in (("ArrowDown", "large"), ("ArrowUp", "check"), ("End", "receipt"), ("ArrowUp", "delivered")):
        page.keyboard.press(key)
        expect(page.locator(f".graph-node[data-id={ref}]")).to_be_focused()
        expect(page.get_by_role("region", name=f"Step {ref}")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("region", name="Definition")).to_be_visible()


def test_the_graph_is_moved_and_zoomed(open_page: OpenPage, counter: Shop) -> None:
    page = open_page(f"/definitions/{counter.orders}")
    card = page.locator(".graph-node[data-id=check]")
    before = card.bounding_box()
    page.get_by_role("button", name="Zoom in").click()
    zoomed = card.bounding_box()
    assert before
    assert zoomed
    assert zoomed["width"] > before["width"]
    frame = page.locator(".graph").bounding_box()
    assert frame
    x, y = frame["x"] + 20, frame["y"] + 40
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + 60, y - 20, steps=4)
    page.mouse.up()
    moved = card.bounding_box()
    assert moved
    assert (round(moved["x"] - zoomed["x"]), round(moved["y"] - zoomed["y"])) == (60, -20)
    page.get_by_role("button", name="Show the whole graph").click()
    whole = [page.locator(f".graph-node[data-id={ref}]").bounding_box() for ref in ("check", "packed")]
    assert all(
        box and box["y"] >= frame["y"] and box["y"] + box["height"] <= frame["y"] + frame["height"] for box in whole
    )


def test_a_map_leads_to_what_is_out_of_sight(open_page: OpenPage, counter: Shop) -> None:
    page = open_page(f"/definitions/{counter.orders}")
    chart = page.locator(".graph-map")
    expect(page.locator(".graph-node").first).to_be_visible()
    page.get_by_role("button", name="Show the whole graph").click()
    expect(chart).to_be_hidden()
    for _ in range(6):
        page.get_by_role("button", name="Zoom in").click()
    expect(chart).to_be_visible()
    last = page.locator(".graph-node[data-id=receipt]")
    expect(last).not_to_be_in_viewport()
    spot = page.locator(".graph-map rect[data-id=receipt]").bounding_box()
    assert spot
    page.mouse.click(spot["x"] + spot["width"] / 2, spot["y"] + spot["height"] / 2)
    expect(last).to_be_in_viewport()
