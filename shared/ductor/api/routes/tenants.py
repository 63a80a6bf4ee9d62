"""Tenants: made and limited by the operator, the administrators of the first tenant. Others see their own only."""

from __future__ import annotations

from typing import Final

from ductor.api.call import Call
from ductor.api.listed import PAGED, paged
from ductor.api.models.common import Wrapped, WrappedPage
from ductor.api.models.tenants import (
    CreatedTenant,
    Entitlements,
    EntitlementsBody,
    NewTenant,
    TenantChanges,
    TenantDetail,
)
from ductor.api.routing import Route
from ductor.app import entitlements
from ductor.app.access import Scope, require
from ductor.app.administration import Administration
from ductor.app.keys import Keys
from ductor.app.refusals import invalid, not_found
from ductor.app.tenants import Tenant
from ductor.model.enums import StepType
from ductor.model.errors import ErrorCode, refuse

_ROOT: Final = "/api/admin/tenants"
_ONE: Final = f"{_ROOT}/<tenant>"


class TenantRoutes:
    """`/api/admin/tenants`."""

    def __init__(self, admin: Administration, keys: Keys) -> None:
        self._tenants = admin.tenants
        self._entitlements = admin.entitlements
        self._keys = keys

    def routes(self) -> tuple[Route, ...]:
        admin, one = Scope.ADMIN.value, Wrapped[TenantDetail]
        made = Wrapped[CreatedTenant]
        return (
            Route("POST", _ROOT, "Create a tenant", self._create, made, NewTenant, scope=admin, status=201),
            Route("GET", _ROOT, "List tenants", self._list, WrappedPage[TenantDetail], query=PAGED, scope=admin),
            Route("GET", _ONE, "Read a tenant", self._get, one, scope=admin),
            Route("PATCH", _ONE, "Change what a plan allows", self._update, one, TenantChanges, scope=admin),
        )

    def _create(self, call: Call) -> Wrapped[CreatedTenant]:
        body = call.body(NewTenant)
        self._require_operator(call)
        wanted = _wanted(body.entitlements) if body.entitlements else None
        tenant, issued = self._tenants.create_with_key(body.name, self._keys)
        if wanted is not None:
            self._entitlements.set(tenant.id, wanted)
        shown = self._detail(tenant).model_dump(exclude={"created_at"})
        data = CreatedTenant(**shown, created_at=tenant.created_at, admin_key_id=issued.id, admin_key=issued.plaintext)
        return Wrapped(data=data, metadata=call.metadata())

    def _list(self, call: Call) -> WrappedPage[TenantDetail]:
        require(call.caller, Scope.ADMIN)
        own = call.caller.tenant
        found = self._tenants.list() if self._tenants.is_operator(own) else (self._tenants.get(own),)
        shown = [self._detail(one) for one in found]
        data, cursor = paged(call, shown, lambda tenant: f"{tenant.created_at} {tenant.id}")
        return WrappedPage(data=data, next_cursor=cursor, metadata=call.metadata())

    def _get(self, call: Call) -> Wrapped[TenantDetail]:
        require(call.caller, Scope.ADMIN)
        return Wrapped(data=self._detail(self._visible(call)), metadata=call.metadata())

    def _update(self, call: Call) -> Wrapped[TenantDetail]:
        require(call.caller, Scope.ADMIN)
        wanted = _wanted(call.body(TenantChanges).entitlements)
        tenant = self._visible(call)
        self._require_operator(call)
        self._entitlements.set(tenant.id, wanted)
        return Wrapped(data=self._detail(tenant), metadata=call.metadata())

    def _visible(self, call: Call) -> Tenant:
        """Another tenant's id answers like an unknown one, except to the operator."""
        wanted, own = call.ids["tenant"], call.caller.tenant
        if wanted != own and not self._tenants.is_operator(own):
            raise not_found("TENANT_NOT_FOUND", "there is no such tenant")
        return self._tenants.get(wanted)

    def _require_operator(self, call: Call) -> None:
        require(call.caller, Scope.ADMIN)
        if not self._tenants.is_operator(call.caller.tenant):
            message = "only administrators of the first tenant create tenants and change plans"
            raise refuse(ErrorCode.PERMISSION_DENIED, "OPERATOR_REQUIRED", message)

    def _detail(self, tenant: Tenant) -> TenantDetail:
        allowed = self._entitlements.get(tenant.id)
        kinds = allowed.step_types
        shown = Entitlements(
            plan=allowed.plan,
            step_types=None if kinds is None else sorted(kind.wire for kind in kinds),
            max_steps=allowed.max_steps,
            max_environments=allowed.max_environments,
            max_connections=allowed.max_connections,
            max_api_keys=allowed.max_api_keys,
            requests_per_second=allowed.requests_per_second,
            burst=allowed.burst,
            retention_days=allowed.retention_days,
        )
        return TenantDetail(id=tenant.id, name=tenant.name, created_at=tenant.created_at, entitlements=shown)


def _wanted(body: EntitlementsBody) -> entitlements.Entitlements:
    return entitlements.Entitlements(
        plan=body.plan,
        step_types=None if body.step_types is None else frozenset(map(_step_type, body.step_types)),
        max_steps=body.max_steps,
        max_environments=body.max_environments,
        max_connections=body.max_connections,
        max_api_keys=body.max_api_keys,
        requests_per_second=body.requests_per_second,
        burst=body.burst,
        retention_days=body.retention_days,
    )


def _step_type(text: str) -> StepType:
    found = StepType.parse(text)
    if found is None:
        raise invalid("FIELD_INVALID", f"a step type is one of {', '.join(StepType)}", "entitlements.step_types")
    return found
