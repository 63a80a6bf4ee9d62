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


def test_keys_are_listed_by_their_beginning_in_order(blobs: Blobs) -> None:
    for key in ("run-1/b", "run-1/a", "run-10/c", "run-2/d"):
        blobs.put(key, b"v")
    assert blobs.keys("run-1/", 10) == ("run-1/a", "run-1/b")
    assert blobs.keys("run-1/", 1) == ("run-1/a",)
    assert blobs.keys("run-3/", 10) == ()
