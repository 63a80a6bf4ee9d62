from __future__ import annotations

import pytest
from tests.unit.app.stored_runs import DOCUMENT, start
from tests.unit.app.world import World


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def run_id(world: World) -> str:
    """A run that no coordinator has touched yet."""
    return start(world, world.published(DOCUMENT))
