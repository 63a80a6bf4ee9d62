"""What takes long on the deployed stack, begun when the stack stands and awaited here, last of all."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Future

import pytest
from tests.deployed.scenarios import SCENARIOS
from tests.deployed.stack import Stack

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(400)]


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda one: one.__name__)
def test_on_the_deployed_stack(
    begun: Mapping[Callable[[Stack], None], Future[None]], scenario: Callable[[Stack], None]
) -> None:
    begun[scenario].result()
