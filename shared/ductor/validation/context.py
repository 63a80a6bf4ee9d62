"""What the validator asks of the installation around a definition. Offline, most answers are 'unresolved'."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum

import msgspec

from ductor.model.enums import StepType
from ductor.steps.spec import Catalog


class Standing(StrEnum):
    """What is known of something that a definition names."""

    KNOWN = "known"
    UNKNOWN = "unknown"
    NOT_WRITABLE = "not_writable"
    UNRESOLVED = "unresolved"


def _unresolved(name: str) -> Standing:
    del name
    return Standing.UNRESOLVED


def _unresolved_connection(mode: str, ref: str) -> Standing:
    del mode, ref
    return Standing.UNRESOLVED


def _unknown_type(mode: str, ref: str) -> str:
    del mode, ref
    return ""


def _unresolved_version(slug: str, number: int) -> Standing:
    del slug, number
    return Standing.UNRESOLVED


class Context(msgspec.Struct, frozen=True, kw_only=True):
    """The installation as the validator sees it.

    `now` (epoch ms) is only used for warnings about the coming year. `environment(key)` may answer NOT_WRITABLE.
    `connection(mode, ref)` is asked for literal references only: a template is known at run time. `family(slug)` and
    `version(slug, number)` are asked for subworkflows.
    `connection_type(mode, ref)` is asked for a known connection; it is empty when nobody knows.
    `step_types` and `max_steps` are what the plan allows, None and 0 for everything. The defaults are those of an
    offline check.
    """

    catalog: Catalog
    now: int
    environment: Callable[[str], Standing] = _unresolved
    connection_type: Callable[[str, str], str] = _unknown_type
    step_types: frozenset[StepType] | None = None
    max_steps: int = 0
    connection: Callable[[str, str], Standing] = _unresolved_connection
    family: Callable[[str], Standing] = _unresolved
    version: Callable[[str, int], Standing] = _unresolved_version
