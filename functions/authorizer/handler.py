"""Checks the API key of a request and tells the API who asks, or why nobody may."""

from __future__ import annotations

from ductor.bootstrap.aws_functions import authorizer

handler = authorizer()
