"""Fires schedules: batches of the schedule queue."""

from __future__ import annotations

from ductor.bootstrap_aws import schedule

handler = schedule()
