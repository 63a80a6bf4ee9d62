"""Fires schedules: batches of the schedule queue."""

from __future__ import annotations

from ductor.bootstrap.aws_functions import schedule

handler = schedule()
