"""Finds runs whose wake-up was lost, once a minute."""

from __future__ import annotations

from ductor.bootstrap.aws_functions import sweeper

handler = sweeper()
