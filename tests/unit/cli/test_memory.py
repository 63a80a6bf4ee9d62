"""A server gives the memory of large values back."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

SCRIPT = """
import threading
from pathlib import Path
from ductor.cli.memory import return_large_blocks

def resident():
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmRSS:"))
    return int(line.split()[1]) / 1024

def burst():
    bytes(8 * 1024 * 1024)  # from the first such block glibc would learn to keep the later ones
    held = []
    for _ in range(16):
        held.append((bytes(b"x") * 4_000_000, bytes(b"y") * 200_000))
    kept.append([small for _, small in held])

kept = []
assert return_large_blocks()
before = resident()
threads = [threading.Thread(target=burst) for _ in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(resident() - before)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another C library has a policy of its own")
def test_a_burst_of_large_values_does_not_stay() -> None:
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True, timeout=60)
    kept_mb = 4 * 16 * 200_000 / 1e6
    assert float(done.stdout) < 2 * kept_mb + 16
