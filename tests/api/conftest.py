from __future__ import annotations

import pytest
from tests.api.world import ApiWorld


@pytest.fixture
def world() -> ApiWorld:
    return ApiWorld()
