"""One stack per test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.functions.world import AwsWorld


@pytest.fixture
def world() -> Iterator[AwsWorld]:
    made = AwsWorld()
    yield made
    made.close()
