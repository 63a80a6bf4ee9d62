"""Applies intents to runs: batches of the intents queue."""

from __future__ import annotations

from ductor.bootstrap.aws_functions import coordinator

handler = coordinator()
