"""State is readable one release back and forth: fields come and go, and a run goes on where another release left it."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.functions.release import GOLDEN, rows, runs
from tests.functions.world import SECOND, AwsWorld

from ductor.app.headers import HEAD, HISTORY_PREFIX, read_header, run_pk
from ductor.app.library import Library, definition_pk
from ductor.engine.fold import fold
from ductor.engine.graph import compile_graph
from ductor.model.attempt import Attempt
from ductor.model.run import SCHEMA, HistoryRow, LastTick, RunState
from ductor.ports import Item, Put
from ductor.steps.behaviours import BEHAVIOURS
from ductor.testing.memory import MemoryTable

RELEASES = sorted(GOLDEN.glob("release-*.json"))
NEWER = {"newer": {"than": ["this", 1]}}


def kept(file: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(file.read_text())
    return found


def header(run: dict[str, Any]) -> dict[str, Any]:
    (found,) = [row["body"] for row in run["rows"] if row["sk"] == HEAD]
    body: dict[str, Any] = found
    return body


def read(body: dict[str, Any]) -> RunState:
    return read_header(Item(pk="R#r", sk=HEAD, body=json.dumps(body).encode()))


def history(run: dict[str, Any], state: RunState) -> list[HistoryRow]:
    stored = [row["body"] for row in run["rows"] if row["sk"].startswith(HISTORY_PREFIX)]
    found = [msgspec.convert(body, HistoryRow) for body in stored]
    last = HistoryRow(state.version, state.last.at, state.last.seq + 1, state.last.transitions, state.last.applied)
    return [*found, last]


@pytest.mark.parametrize("file", RELEASES, ids=lambda file: file.stem)
def test_what_a_release_stored_is_read_and_is_what_its_history_says(file: Path) -> None:
    for run in kept(file).values():
        state = read(header(run))
        origin = state.origin
        table, pk = MemoryTable(), definition_pk(origin.tenant, origin.definition_id)
        for sk, packed in run["definition"].items():
            table.write((Put(Item(pk=pk, sk=sk, body=base64.b64decode(packed))),))
        definition = Library(table).load(origin.tenant, origin.definition_id)[1]
        folded = fold(compile_graph(definition, BEHAVIOURS), origin, history(run, state))
        assert folded == msgspec.structs.replace(state, last=LastTick(), version=folded.version)
        for stored in run["rows"]:
            if stored["sk"].startswith("A#"):
                assert msgspec.convert(stored["body"], Attempt).status.ended


@pytest.mark.parametrize("file", RELEASES, ids=lambda file: file.stem)
def test_fields_that_a_newer_release_added_are_passed_over(file: Path) -> None:
    for run in kept(file).values():
        body = header(run)
        known = read(body)
        newer = {**body, **NEWER, "schema": SCHEMA + 1}
        for name in ("origin", "root", "last"):
            newer[name] = {**newer[name], **NEWER}
        newer["root"]["nodes"] = {ref: {**node, **NEWER} for ref, node in newer["root"]["nodes"].items()}
        newer["last"]["transitions"] = [{**one, **NEWER} for one in newer["last"].get("transitions", [])]
        assert read(newer) == msgspec.structs.replace(known, schema=SCHEMA + 1)
        for row in run["rows"]:
            kind = HistoryRow if row["sk"].startswith(HISTORY_PREFIX) else Attempt if row["sk"][:2] == "A#" else None
            if kind is not None:
                assert msgspec.convert({**row["body"], **NEWER}, kind) == msgspec.convert(row["body"], kind)


def test_fields_that_an_older_release_did_not_write_have_defaults() -> None:
    for run in kept(RELEASES[0]).values():
        body = header(run)
        for field in msgspec.structs.fields(RunState):
            if not field.required:
                less = {name: value for name, value in body.items() if name != field.name}
                whole = msgspec.structs.replace(read(body), **{field.name: getattr(read(less), field.name)})
                assert read(less) == whole


def test_runs_that_another_release_left_go_on(world: AwsWorld) -> None:
    """Headers as a newer release would have written them, with an ignored field, and the number of its schema."""
    completed, failed, waits = runs(world)
    for run_id in (completed, failed, waits):
        item = world.emulator.table.get(run_pk(run_id), HEAD)
        assert item is not None
        newer = {**json.loads(item.body), **NEWER, "schema": SCHEMA + 1}
        row = msgspec.structs.replace(item, body=json.dumps(newer).encode(), version=item.version + 1)
        newer["version"] = row.version
        row = msgspec.structs.replace(row, body=json.dumps(newer).encode())
        assert world.emulator.table.write((Put(row, item.version),)) is None
    event = {"event_name": "order.paid", "correlation_key": "o-1", "event_id": "e-1", "payload": {"amount": 100}}
    assert world.ok("POST", "/api/v2/workflow-events:publish", event)["matched"] == 1
    world.pump()
    world.control(failed, "redrive", "again")
    for _ in range(3):
        world.pump()
        world.clock.advance(2 * SECOND)
    assert [world.status(run_id) for run_id in (completed, failed)] == ["completed", "failed"]
    assert {row["sk"] for row in rows(world, failed)["rows"]} >= {"A#s0#000003"}
    assert world.header(waits).root.nodes["paid"].status.value == "completed"


def test_this_release_is_kept() -> None:
    from ductor import __version__

    assert GOLDEN / f"release-{__version__}.json" in RELEASES, "python -m tests.functions.release"
