"""Wakes runs: batches of the timers queue."""

from __future__ import annotations

from ductor.bootstrap_aws import timer

handler = timer()
