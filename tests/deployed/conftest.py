"""One emulator and one deployment for all tests here."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.deployed.emulator import MiniStack
from tests.deployed.stack import Stack


@pytest.fixture(scope="session")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    folder: Path = tmp_path_factory.mktemp("deployed")
    aws = MiniStack(folder / "aws")
    try:
        aws.start()
        made = Stack(aws, folder)
        made.deploy()
        yield made
    finally:
        aws.stop()
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session", autouse=True)
def begun(request: pytest.FixtureRequest, stack: Stack) -> Iterator[Mapping[Callable[[Stack], None], Future[None]]]:
    """The scenarios that were asked for, all of them begun: mostly they wait, and other tests run meanwhile."""
    calls = [getattr(item, "callspec", None) for item in request.session.items]
    wanted = [call.params["scenario"] for call in calls if call is not None and "scenario" in call.params]
    with ThreadPoolExecutor(max_workers=max(1, len(wanted))) as pool:
        yield {scenario: pool.submit(scenario, stack) for scenario in wanted}
