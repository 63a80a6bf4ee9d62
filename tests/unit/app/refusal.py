"""Expecting a refusal by its codes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from ductor.model.errors import ErrorCode, RefusedError


@contextmanager
def refused(error_code: ErrorCode, *codes: str, field: str | None = None) -> Iterator[list[RefusedError]]:
    """The block must refuse with `error_code` and exactly these specific codes. Yields a list that then holds it."""
    found: list[RefusedError] = []
    with pytest.raises(RefusedError) as caught:
        yield found
    found.append(caught.value)
    assert caught.value.error_code is error_code
    assert sorted(violation.code for violation in caught.value.violations) == sorted(codes)
    if field is not None:
        assert caught.value.violations[0].field == field
