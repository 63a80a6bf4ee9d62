"""Ductor: durable workflows. This module names the version and imports nothing, so that a cold start stays cheap."""

from __future__ import annotations

__version__ = "0.1.0"
