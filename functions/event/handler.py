"""Delivers events from the bus: to runs that wait for them, and to definitions that they start."""

from __future__ import annotations

from ductor.bootstrap.aws_functions import event

handler = event()
