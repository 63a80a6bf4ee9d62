"""The HTTP API: every route, behind API Gateway."""

from __future__ import annotations

from ductor.bootstrap_aws import api

handler = api()
