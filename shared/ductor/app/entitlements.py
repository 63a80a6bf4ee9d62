"""What a tenant's plan allows: step types and numbers of things. Absent means everything."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec

from ductor.app.headers import sort_time
from ductor.app.refusals import invalid
from ductor.model.definition import MAX_STEPS, Definition
from ductor.model.enums import StepType
from ductor.model.errors import ErrorCode, refuse
from ductor.ports import Item, Put, Table

SK: Final = "ENTITLEMENTS"
CODE: Final = "ENTITLEMENT_REQUIRED"
NUMBERS: Final = (
    "max_steps",
    "max_environments",
    "max_connections",
    "max_api_keys",
    "requests_per_second",
    "burst",
    "retention_days",
)
MAX_RETENTION_DAYS: Final = 36_500
RETENTION_SK: Final = "RETENTION"
RETENTION_PK: Final = "RETENTION"
"""Sort key of a row that only such tenants have, and its partition of index `i3`."""


class Entitlements(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The row `N#<tenant>`/`ENTITLEMENTS`. `step_types` None: all; a number of 0: no limit of its own.

    `burst` requests may come at once, 0 = as many as a second brings. Runs are removed `retention_days` after their
    end, 0 = never.
    """

    plan: str = ""
    step_types: frozenset[StepType] | None = None
    max_steps: int = 0
    max_environments: int = 0
    max_connections: int = 0
    max_api_keys: int = 0
    requests_per_second: int = 0
    burst: int = 0
    retention_days: int = 0


UNLIMITED: Final = Entitlements()


class EntitlementStore:
    """The entitlements of all tenants."""

    def __init__(self, table: Table) -> None:
        self._table = table

    def get(self, tenant: str) -> Entitlements:
        """What the plan allows now."""
        return decoded(self._table.get(f"N#{tenant}", SK))

    def set(self, tenant: str, wanted: Entitlements) -> Entitlements:
        """Replace them as a whole. Takes effect at the next validation, trigger or creation; running runs go on."""
        if len(wanted.plan) > 100:
            raise invalid("FIELD_INVALID", "at most 100 characters", "plan")
        for name in NUMBERS:
            if getattr(wanted, name) < 0:
                raise invalid("FIELD_INVALID", "0 for no limit, or a positive number", name)
        if wanted.burst and not wanted.requests_per_second:
            raise invalid("FIELD_INVALID", "a burst needs requests_per_second, which fill it up again", "burst")
        if wanted.retention_days > MAX_RETENTION_DAYS:
            raise invalid(
                "FIELD_INVALID", f"at most {MAX_RETENTION_DAYS} days; 0 keeps runs for ever", "retention_days"
            )
        if wanted.max_steps > MAX_STEPS:
            raise invalid("FIELD_INVALID", f"a definition has at most {MAX_STEPS} steps anyway", "max_steps")
        ops = [Put(Item(pk=f"N#{tenant}", sk=SK, body=msgspec.json.encode(wanted)))]
        if wanted.retention_days:
            ops.append(Put(retention_item(tenant, 0, b"{}", 1)))
        self._table.write(ops)
        return wanted


def retention_item(tenant: str, at: int, body: bytes, version: int) -> Item:
    """The row by which the sweeper finds a tenant whose runs are removed after a while; it looks at `at` (epoch ms)."""
    i3 = (RETENTION_PK, f"{sort_time(at)}#{tenant}")
    return Item(pk=f"N#{tenant}", sk=RETENTION_SK, version=version, body=body, i3=i3)


def decoded(item: Item | None) -> Entitlements:
    """The entitlements of a row; everything when there is none."""
    return UNLIMITED if item is None else msgspec.json.decode(item.body, type=Entitlements)


def require_room(limit: int, have: int, what: str) -> None:
    """Refuse with PERMISSION_DENIED `ENTITLEMENT_REQUIRED` when one more of `what` is over the plan's limit."""
    if limit and have >= limit:
        message = f"this tenant's plan allows {limit} {what}; ask for a larger plan or remove one"
        raise refuse(ErrorCode.PERMISSION_DENIED, CODE, message)


def require_runnable(definition: Definition, allowed: Entitlements) -> None:
    """Refuse a run of a version that the plan does not allow any more, whatever it allowed at publication."""
    if allowed.max_steps and len(definition.steps) > allowed.max_steps:
        message = f"this tenant's plan allows {allowed.max_steps} steps per definition; this one has more"
        raise refuse(ErrorCode.PERMISSION_DENIED, CODE, message, "definition_id")
    missing = _missing({step.type for step in definition.steps}, allowed)
    if missing:
        message = f"this tenant's plan does not allow {missing} steps; ask for a larger plan"
        raise refuse(ErrorCode.PERMISSION_DENIED, CODE, message, "definition_id")


def _missing(used: Iterable[StepType], allowed: Entitlements) -> str:
    if allowed.step_types is None:
        return ""
    return ", ".join(sorted(kind.value for kind in used if kind not in allowed.step_types))
