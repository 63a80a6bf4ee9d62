"""Applies intents to runs: batches of the intents queue."""

from __future__ import annotations

from ductor.bootstrap_aws import coordinator

handler = coordinator()
