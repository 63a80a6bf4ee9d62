"""API keys, for administrators of a tenant."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from ductor.api.call import Call
from ductor.api.listed import PAGED, paged
from ductor.api.models.common import Wrapped, WrappedPage
from ductor.api.models.keys import IssuedKey, IssueKeyBody, KeyEntry
from ductor.api.routing import Route
from ductor.app.access import ANY_ENVIRONMENT, Caller, Scope, require
from ductor.app.administration import Administration
from ductor.app.entitlements import require_room
from ductor.app.keys import KeyGrant, KeyInfo, Keys
from ductor.app.refusals import invalid
from ductor.model.errors import ErrorCode, refuse

_ROOT: Final = "/api/admin/api-keys"


class KeyRoutes:
    """`/api/admin/api-keys`."""

    def __init__(self, keys: Keys, admin: Administration) -> None:
        self._keys = keys
        self._tenants = admin.tenants
        self._entitlements = admin.entitlements

    def routes(self) -> tuple[Route, ...]:
        admin = Scope.ADMIN.value
        return (
            Route("POST", _ROOT, "Issue a key", self._issue, Wrapped[IssuedKey], IssueKeyBody, scope=admin, status=201),
            Route("GET", _ROOT, "List keys", self._list, WrappedPage[KeyEntry], query=PAGED, scope=admin),
            Route("DELETE", f"{_ROOT}/<key_id>", "Revoke a key", self._revoke, Wrapped[KeyEntry], scope=admin),
        )

    def _issue(self, call: Call) -> Wrapped[IssuedKey]:
        require(call.caller, Scope.ADMIN)
        grant = _grant(call.body(IssueKeyBody))
        self._check(call.caller, grant)
        issued = self._keys.issue_grant(call.caller.tenant, grant)
        return Wrapped(data=IssuedKey(id=issued.id, key=issued.plaintext), metadata=call.metadata())

    def _check(self, caller: Caller, grant: KeyGrant) -> None:
        """Nobody gives authority over environments that they do not have themselves; the plan must have room."""
        for field in ("environments_read", "environments_write"):
            own, wanted = getattr(caller, field), getattr(grant, field)
            if ANY_ENVIRONMENT not in own and not wanted <= own:
                message = "this API key cannot give authority over environments that it has no authority over itself"
                raise refuse(ErrorCode.PERMISSION_DENIED, "ENVIRONMENT_NOT_WRITABLE", message, field)
        if self._tenants.environment(caller.tenant, grant.default_environment) is None:
            message = "there is no such environment; name one by its key"
            raise invalid("ENVIRONMENT_UNKNOWN", message, "default_environment")
        limit = self._entitlements.get(caller.tenant).max_api_keys
        live = [info for info in self._keys.list(caller.tenant) if not info.revoked_at] if limit else []
        require_room(limit, len(live), "API keys")

    def _list(self, call: Call) -> WrappedPage[KeyEntry]:
        require(call.caller, Scope.ADMIN)
        shown = [_entry(info) for info in self._keys.list(call.caller.tenant)]
        data, cursor = paged(call, shown, lambda key: f"{key.created_at} {key.id}")
        return WrappedPage(data=data, next_cursor=cursor, metadata=call.metadata())

    def _revoke(self, call: Call) -> Wrapped[KeyEntry]:
        require(call.caller, Scope.ADMIN)
        info = self._keys.revoke(call.caller.tenant, call.ids["key_id"])
        return Wrapped(data=_entry(info), metadata=call.metadata())


def _grant(body: IssueKeyBody) -> KeyGrant:
    for place, scope in enumerate(body.scopes):
        if scope not in frozenset(Scope):
            raise invalid("FIELD_INVALID", f"a scope is one of {', '.join(Scope)}", f"scopes[{place}]")
    return KeyGrant(
        name=body.name,
        scopes=frozenset(body.scopes),
        roles=frozenset(body.roles),
        environments_read=frozenset(body.environments_read),
        environments_write=frozenset(body.environments_write),
        default_environment=body.default_environment,
        expires_at=_expiry(body.expires_at),
        user=body.user,
    )


def _expiry(moment: datetime | None) -> int:
    if moment is None:
        return 0
    if moment.tzinfo is None:
        raise invalid("FIELD_INVALID", "give the offset from UTC too, for example 2027-01-31T00:00:00Z", "expires_at")
    return max(1, int(moment.timestamp() * 1000))


def _entry(info: KeyInfo) -> KeyEntry:
    grant = info.grant
    return KeyEntry(
        id=info.id,
        name=grant.name,
        scopes=sorted(grant.scopes),
        roles=sorted(grant.roles),
        environments_read=sorted(grant.environments_read),
        environments_write=sorted(grant.environments_write),
        default_environment=grant.default_environment,
        user=grant.user,
        created_at=info.created_at,
        expires_at=grant.expires_at,
        revoked_at=info.revoked_at,
        last_used_at=info.last_used_at,
    )
