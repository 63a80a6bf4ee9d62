"""Where values of a run are kept, by their size, and how they are found again."""

from __future__ import annotations

import pytest
from tests.unit.worker.desk import RUN, Desk, returns

from ductor.app.headers import run_pk
from ductor.app.payloads import PayloadMissingError
from ductor.model.attempt import attempt_sk
from ductor.model.payload import INLINE_BYTES, ROW_BYTES, BlobRef, Inline, RowRef, stage


def text_of(size: int) -> str:
    """A text whose encoding has `size` bytes."""
    return "x" * (size - 2)


@pytest.mark.parametrize(
    ("size", "kind"),
    [(INLINE_BYTES, Inline), (INLINE_BYTES + 1, RowRef), (ROW_BYTES, RowRef), (ROW_BYTES + 1, BlobRef)],
)
def test_the_encoded_size_decides_where_a_value_is_kept(size: int, kind: type) -> None:
    desk = Desk()
    kept = desk.payloads.keep(RUN, text_of(size))
    assert isinstance(kept, kind)
    assert desk.payloads.load(RUN, kept) == text_of(size)


def test_size_is_bytes_not_characters() -> None:
    assert isinstance(stage(RUN, "😀" * (ROW_BYTES // 4))[0], BlobRef)


@pytest.mark.parametrize("size", [1_000, 20_000])
def test_the_same_value_is_kept_once_and_another_run_does_not_share_it(size: int) -> None:
    desk = Desk()
    assert desk.payloads.keep(RUN, text_of(size)) == desk.payloads.keep(RUN, text_of(size))
    other = desk.payloads.keep("run-2", text_of(size))
    assert desk.payloads.load("run-2", other) == text_of(size)
    if isinstance(other, BlobRef):
        assert other != desk.payloads.keep(RUN, text_of(size))


def test_staging_stores_nothing() -> None:
    desk = Desk()
    payload, stored = stage(RUN, text_of(1_000))
    assert stored is not None
    assert stored.ref == payload
    assert desk.table.query(run_pk(RUN)).items == ()
    with pytest.raises(PayloadMissingError):
        desk.payloads.load(RUN, payload)


def test_a_value_of_another_run_is_not_found() -> None:
    desk = Desk()
    kept = desk.payloads.keep("run-2", text_of(1_000))
    with pytest.raises(PayloadMissingError):
        desk.payloads.load(RUN, kept)


def test_a_reference_to_an_attempt_means_its_output() -> None:
    desk = Desk(returns({"x": "y" * 1_000}))
    desk.send()
    desk.work(desk.worker())
    assert desk.payloads.load(RUN, RowRef(attempt_sk("n", 1), 1_000)) == {"x": "y" * 1_000}


@pytest.mark.parametrize("number", [9007199254740993, 2**64 - 1, -(2**63), 0.1, 1e-140, 1e300])
def test_numbers_come_back_exactly(number: float) -> None:
    desk = Desk()
    value = {"number": number, "fill": "x" * 500}
    assert desk.payloads.load(RUN, desk.payloads.keep(RUN, value)) == value
