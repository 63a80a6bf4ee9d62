"""Runs attempts: batches of the steps queue."""

from __future__ import annotations

from ductor.bootstrap_aws import step

handler = step()
