"""Runs attempts: batches of the steps queue."""

from __future__ import annotations

from ductor.bootstrap.aws_functions import step

handler = step()
