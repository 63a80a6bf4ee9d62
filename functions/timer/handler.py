"""Wakes runs: batches of the timers queue."""

from __future__ import annotations

from ductor.bootstrap.aws_functions import timer

handler = timer()
