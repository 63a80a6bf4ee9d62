"""The HTTP API: every route, behind API Gateway."""

from __future__ import annotations

from ductor.bootstrap.aws_functions import api

handler = api()
