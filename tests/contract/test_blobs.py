"""`ports.Blobs`."""

from __future__ import annotations

from ductor.ports import Blobs


def test_a_blob_comes_back_byte_for_byte(blobs: Blobs) -> None:
    data = bytes(range(256)) * 10_000
    blobs.put("t/sha256/é", data)
    assert blobs.get("t/sha256/é") == data


def test_an_empty_blob_is_not_an_absent_one(blobs: Blobs) -> None:
    blobs.put("k", b"")
    assert blobs.get("k") == b""
    assert blobs.get("other") is None


def test_putting_a_key_again_changes_nothing(blobs: Blobs) -> None:
    blobs.put("k", b"v")
    blobs.put("k", b"v")
    assert blobs.get("k") == b"v"


def test_a_deleted_blob_is_gone_and_deleting_again_is_fine(blobs: Blobs) -> None:
    blobs.put("k", b"v")
    blobs.delete("k")
    blobs.delete("k")
    assert blobs.get("k") is None
