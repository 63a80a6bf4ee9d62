"""What a run has asked of its backend so far, counted at each commit: for estimates of cost, never for decisions."""

from __future__ import annotations

import msgspec


class Used(msgspec.Struct, array_like=True, gc=False):
    """Sums over all commits. Bytes are those of encoded rows before any compression.

    `headers` counts bytes of run headers up to the commit before the one that stores it; `shared` those commits that
    wrote other rows in the same transaction. `rows` and `row_bytes`: rows written apart, `pages` and `page_bytes`: in a
    transaction. `moves`: entries of list indexes that went or came. `tasks`, `outputs` and `ran_ms`: attempts handed to
    workers, bytes of their results, and milliseconds that they ran.
    """

    commits: int = 0
    headers: int = 0
    shared: int = 0
    history: int = 0
    rows: int = 0
    row_bytes: int = 0
    pages: int = 0
    page_bytes: int = 0
    moves: int = 0
    reads: int = 0
    intents: int = 0
    tasks: int = 0
    outputs: int = 0
    ran_ms: int = 0
    beats: int = 0
    wakes: int = 0
    far_wakes: int = 0
    blobs: int = 0
    blob_reads: int = 0
    events: int = 0
