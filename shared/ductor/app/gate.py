"""Whether a run may start now: its environment is on, the caller's release is the live one, the plan allows it."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from ductor.app.access import Caller
from ductor.app.entitlements import SK as ENTITLEMENTS
from ductor.app.entitlements import decoded, require_runnable
from ductor.app.refusals import precondition
from ductor.app.tenants import Environment, environment_sk
from ductor.model.definition import Definition
from ductor.model.errors import ErrorCode, refuse
from ductor.model.json import JSON
from ductor.ports import Check, Table


class Entry(msgspec.Struct, frozen=True):
    """A run may start with these variables of its environment, if `guard` still holds when its header is written."""

    variables: Mapping[str, JSON]
    guard: Check | None


class Gate:
    """One look-up per admission. Nothing is cached: a release that was switched must be refused at once."""

    def __init__(self, table: Table) -> None:
        self._table = table

    def enter(self, tenant: str, definition: Definition) -> Entry:
        """For runs that no caller starts: events, schedules, parents. Their releases are not pinned.

        FAILED_PRECONDITION `ENVIRONMENT_INACTIVE`, PERMISSION_DENIED `ENTITLEMENT_REQUIRED`.
        """
        return Entry(self._open(tenant, definition)[0].variables, None)

    def admit(self, caller: Caller, definition: Definition, external_deployment_id: str) -> Entry:
        """For a caller's trigger. Refuses as `enter` does, and

        PERMISSION_DENIED `ENVIRONMENT_NOT_WRITABLE` when the key has no authority there, FAILED_PRECONDITION
        `RELEASE_MISMATCH` when the environment requires its live release and the caller named another one or none.
        """
        if not caller.may_write(definition.environment):
            message = f"this API key may not start runs in the environment {definition.environment!r}"
            raise refuse(ErrorCode.PERMISSION_DENIED, "ENVIRONMENT_NOT_WRITABLE", message, "definition_id")
        environment, version = self._open(caller.tenant, definition)
        if not environment.require_release:
            return Entry(environment.variables, None)
        if external_deployment_id != environment.live_deployment:
            named = "is not the live release" if external_deployment_id else "must name the live release"
            message = f"external_deployment_id {named} of the environment {environment.key!r}"
            raise precondition("RELEASE_MISMATCH", message, "external_deployment_id")
        # A switch of the release between this look and the admission must win over the admission.
        guard = Check(f"N#{caller.tenant}", environment_sk(environment.key), version)
        return Entry(environment.variables, guard)

    def _open(self, tenant: str, definition: Definition) -> tuple[Environment, int]:
        pk = f"N#{tenant}"
        own, plan = (pk, environment_sk(definition.environment)), (pk, ENTITLEMENTS)
        rows = self._table.batch_get([own, plan])
        environment = msgspec.json.decode(rows[own].body, type=Environment) if own in rows else None
        if environment is None or not environment.active:
            message = f"the environment {definition.environment!r} is not active; no run starts in it"
            raise precondition("ENVIRONMENT_INACTIVE", message, "definition_id")
        require_runnable(definition, decoded(rows.get(plan)))
        return environment, rows[own].version
