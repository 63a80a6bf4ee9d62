"""How a long-lived server treats its memory: what it gives back, and what it need not look through again and again."""

from __future__ import annotations

import ctypes
import gc
import sys
from typing import Final

# Parameters of mallopt(3).
_TRIM_THRESHOLD: Final = -1
_MMAP_THRESHOLD: Final = -3

_LARGE: Final = 256 * 1024


def return_large_blocks() -> bool:
    """Make the C library return every freed block of 256 KB or more to the system at once; False where it cannot.

    By itself glibc learns from the first freed block of megabytes to keep up to 32 MB of such blocks in the heap of
    each thread: after a burst of 4 MB payloads a server kept 500 MB for ever, with this 200.
    """
    if not sys.platform.startswith("linux"):
        return False
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):
        return False
    return all(mallopt(parameter, _LARGE) == 1 for parameter in (_MMAP_THRESHOLD, _TRIM_THRESHOLD))


def put_off_collection() -> None:
    """Look for unreachable cycles later: a start makes 60,000 objects that stay, and looking at them takes 0.1 s."""
    gc.disable()


def begin_collection() -> None:
    """From now on look for cycles, but never again among what the start has made.

    That is as much as lives on later: every full collection would take 20 ms, in the middle of a round.
    """
    gc.freeze()
    gc.enable()
