"""How long a page of the run list takes with 100,000 runs in the data file, by filter."""

from __future__ import annotations

import random
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from ductor.adapters.local.blobs import SqliteBlobs
from ductor.adapters.local.database import Database
from ductor.adapters.local.system import SystemClock, SystemIds
from ductor.adapters.local.table import SqliteTable
from ductor.app.access import ALL_SCOPES, Caller
from ductor.app.headers import header_item
from ductor.app.library import Library, plan_item, row_item
from ductor.app.payloads import PayloadStore
from ductor.app.run_filter import read_filter
from ductor.app.run_index import index_puts
from ductor.app.runs import Runs
from ductor.app.tenants import Tenants
from ductor.model.definition import Definition, DefinitionRow, Step
from ductor.model.enums import DefinitionStatus, NodeStatus, RunStatus, StepType
from ductor.model.payload import Inline
from ductor.model.run import NodeState, Origin, RunState
from ductor.model.transition import NodeCompleted, RunEnded
from ductor.ports import Put

RUNS = 100_000
FAMILIES = 50
CALLS = 60
FIRST = 1_790_000_000_000
_STATUSES = (*[RunStatus.COMPLETED] * 90, *[RunStatus.FAILED] * 6, *[RunStatus.RUNNING] * 2, *[RunStatus.CANCELLED] * 2)


def p95_ms() -> dict[str, float]:
    """By filter, the milliseconds of CPU within which 95 of 100 pages of 50 runs are answered: nothing here waits."""
    with filled() as (runs, caller):
        return {name: _p95(runs, caller, query) for name, query in FILTERS.items()}


def _family(number: int) -> str:
    return f"family-{number}"


def _run_id(number: int) -> str:
    return f"{number:08d}-0000-7000-8000-000000000000"


def _hour(rng: random.Random) -> dict[str, str]:
    first = FIRST // 1000 + rng.randrange(RUNS - 3_600)
    stamps = [time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at)) for at in (first, first + 3_600)]
    return {"started_after": stamps[0], "started_before": stamps[1]}


Query = Callable[[random.Random], dict[str, str]]

FILTERS: dict[str, Query] = {
    "none": lambda _: {},
    "workflow_type": lambda rng: {"workflow_type": _family(rng.randrange(FAMILIES))},
    "workflow_type, status": lambda rng: {"workflow_type": _family(rng.randrange(FAMILIES)), "status": "failed"},
    "status": lambda _: {"status": "failed"},
    "active_only": lambda _: {"active_only": "true"},
    "started_after, started_before": _hour,
    "label": lambda rng: {"label.order": f"o-{rng.randrange(RUNS)}"},
    "attr": lambda rng: {"attr.region": rng.choice(("north", "south"))},
    "subject_id": lambda rng: {"subject_id": f"s-{rng.randrange(5_000)}"},
    "subject_type": lambda _: {"subject_type": "customer"},
    "root_run_id": lambda rng: {"root_run_id": _run_id(rng.randrange(RUNS) // 10 * 10)},
    "parent_run_id": lambda rng: {"parent_run_id": _run_id(rng.randrange(RUNS) // 10 * 10)},
    "journey_id": lambda rng: {"journey_id": _run_id(rng.randrange(RUNS) // 10 * 10)},
    "schedule": lambda rng: {"schedule": _family(rng.randrange(FAMILIES))},
    "environment": lambda _: {"environment": "default"},
    "environment of few": lambda _: {"environment": "staging"},
    "q": lambda rng: {"q": f"o-{rng.randrange(RUNS)}"},
}


def _p95(runs: Runs, caller: Caller, query: Query) -> float:
    rng, took = random.Random(1), []
    for _ in range(CALLS):
        wanted = read_filter(query(rng).items(), FIRST)
        began = time.thread_time()
        runs.list_runs(caller, wanted, 50, None)
        took.append((time.thread_time() - began) * 1000)
    return sorted(took)[int(CALLS * 0.95) - 1]


@contextmanager
def filled() -> Iterator[tuple[Runs, Caller]]:
    """A data file with the runs in it."""
    with tempfile.TemporaryDirectory(prefix="ductor-bench-") as folder:
        database = Database(Path(folder) / "ductor.db")
        table, clock, ids = SqliteTable(database), SystemClock(), SystemIds()
        tenants = Tenants(table, clock, ids)
        tenant = tenants.create("bench").id
        _fill(table, tenant)
        runs = Runs(
            table=table,
            payloads=PayloadStore(table, SqliteBlobs(database)),
            library=Library(table),
            tenants=tenants,
        )
        yield runs, Caller("key", tenant, frozenset(ALL_SCOPES))
        database.close()


def _fill(table: SqliteTable, tenant: str) -> None:
    rng = random.Random(1)
    for number in range(FAMILIES):
        definition = Definition(family_slug=_family(number), steps=(Step(ref="a", type=StepType.ACTION),))
        row = DefinitionRow(
            id=f"d{number}",
            tenant=tenant,
            family_slug=_family(number),
            status=DefinitionStatus.PUBLISHED,
            version=1,
            document={},
        )
        table.write([Put(row_item(row, 1)), Put(plan_item(tenant, row.id, definition))])
    for first in range(0, RUNS, 10):
        ops: list[Put] = []
        for number in range(first, first + 10):
            ops += _run(rng, tenant, number, first)
        table.write(ops[:100])
        table.write(ops[100:])


def _run(rng: random.Random, tenant: str, number: int, root: int) -> list[Put]:
    family, status, child = rng.randrange(FAMILIES), rng.choice(_STATUSES), number != root
    origin = Origin(
        run_id=_run_id(number),
        tenant=tenant,
        definition_id=f"d{family}",
        family_slug=_family(family),
        definition_version=1,
        created_at=FIRST + number * 1_000,
        journey_id=_run_id(root),
        root_run_id=_run_id(root),
        parent_run_id=_run_id(root) if child else "",
        environment="staging" if number % 1_000 == 0 else "default",
        subject_type="customer",
        subject_id=f"s-{number % 5_000}",
        labels=(("order", f"o-{number}"),),
        scheduled_at=1 if number % 7 == 0 else 0,
    )
    ended = NodeCompleted("a", attributes={"region": rng.choice(("north", "south"))})
    ends = (ended, RunEnded(status)) if status.terminal else (ended,)
    state = RunState(origin=origin, status=status, started_at=origin.created_at, attributes=ended.attributes)
    state.root.nodes["a"] = NodeState(status=NodeStatus.COMPLETED, output=Inline("x" * 100), finished_at=1)
    state.root.ended = 1
    return [Put(header_item(state)), *index_puts(origin, ends, first=True)]
