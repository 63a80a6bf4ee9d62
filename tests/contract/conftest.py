"""One backend per test and implementation."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.contract.deviations import deviation
from tests.contract.implementations import Backend, ReadTimers, implementations

from ductor.ports import Blobs, Queue, Table
from ductor.testing.memory import VirtualClock


@pytest.fixture(params=sorted(implementations()))
def backend(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Backend]:
    known = deviation(request.param, request.node.originalname, request.node.callspec.params)
    if known is not None:
        request.applymarker(pytest.mark.xfail(reason=f"{known.name}: {known.value}", strict=True))
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
