"""One backend per test and implementation."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.contract.deviations import deviation
from tests.contract.implementations import Backend, ReadTimers, implementations
from tests.contract.ministack_backend import ministack_backend
from tests.deployed.emulator import MiniStack

from ductor.ports import Blobs, Queue, Table
from ductor.testing.memory import VirtualClock

MINISTACK = "ministack"


@pytest.fixture(scope="session")
def ministack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MiniStack]:
    """One emulator for all suites, and not that of the deployed tests: here its clock is the tests'."""
    aws = MiniStack(tmp_path_factory.mktemp("contract") / "aws")
    try:
        aws.start(clock=True)
        yield aws
    finally:
        aws.stop()


@pytest.fixture(
    params=[
        *sorted(implementations()),
        pytest.param(MINISTACK, marks=pytest.mark.e2e),
    ]
)
def backend(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Backend]:
    known = deviation(request.param, request.node.originalname, request.node.callspec.params)
    if known is not None:
        request.applymarker(pytest.mark.xfail(reason=f"{known.name}: {known.value}", strict=True))
    if request.param == MINISTACK:
        made = ministack_backend(request.getfixturevalue("ministack"))
    else:
        made = implementations()[request.param](tmp_path)
    yield made
    made.close()


@pytest.fixture
def clock(backend: Backend) -> VirtualClock:
    return backend.clock


@pytest.fixture
def table(backend: Backend) -> Table:
    return backend.table


@pytest.fixture
def blobs(backend: Backend) -> Blobs:
    return backend.blobs


@pytest.fixture
def intents(backend: Backend) -> Queue:
    return backend.intents


@pytest.fixture
def steps(backend: Backend) -> Queue:
    return backend.steps


@pytest.fixture
def timers(backend: Backend) -> ReadTimers:
    return backend.timers
