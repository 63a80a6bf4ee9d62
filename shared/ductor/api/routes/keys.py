"""API keys, for administrators of a tenant."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from ductor.api.call import Call
from ductor.api.models.common import Wrapped, WrappedPage
from ductor.api.models.keys import IssuedKey, IssueKeyBody, KeyEntry
from ductor.api.routing import Route
from ductor.app.access import Scope, require
from ductor.app.keys import KeyGrant, KeyInfo, Keys
from ductor.app.refusals import invalid

_ROOT: Final = "/api/admin/api-keys"


class KeyRoutes:
    """`/api/admin/api-keys`."""

    def __init__(self, keys: Keys) -> None:
        self._keys = keys

    def routes(self) -> tuple[Route, ...]:
        admin = Scope.ADMIN.value
        return (
            Route("POST", _ROOT, "Issue a key", self._issue, Wrapped[IssuedKey], IssueKeyBody, scope=admin, status=201),
            Route("GET", _ROOT, "List keys", self._list, WrappedPage[KeyEntry], scope=admin),
            Route("DELETE", f"{_ROOT}/<key_id>", "Revoke a key", self._revoke, Wrapped[KeyEntry], scope=admin),
        )

    def _issue(self, call: Call) -> Wrapped[IssuedKey]:
        require(call.caller, Scope.ADMIN)
        issued = self._keys.issue_grant(call.caller.tenant, _grant(call.body(IssueKeyBody)))
        return Wrapped(data=IssuedKey(id=issued.id, key=issued.plaintext), metadata=call.metadata())

    def _list(self, call: Call) -> WrappedPage[KeyEntry]:
        require(call.caller, Scope.ADMIN)
        shown = [_entry(info) for info in self._keys.list(call.caller.tenant)]
        return WrappedPage(data=shown, metadata=call.metadata())

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
