from __future__ import annotations

from collections.abc import Iterator
from unittest import mock

import pytest
from tests.unit.aws.cloud import Cloud, account

from ductor.actions.aws import access

SHARED = Cloud()
IMPATIENT = Cloud()
"""Making clients is what takes the longest; moto answers them in every test anew."""


@pytest.fixture
def cloud() -> Iterator[Cloud]:
    SHARED.params.clear()
    with account():
        yield SHARED


@pytest.fixture
def impatient() -> Iterator[Cloud]:
    """A cloud whose clients repeat nothing by themselves; no other's are made meanwhile."""
    with account(), mock.patch.object(access, "REPEATED", access.ONCE):
        yield IMPATIENT
