"""One emulator and one deployment for all tests here."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
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
