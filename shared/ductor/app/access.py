"""Who calls, and what that caller may do. Decides on scopes alone; never reads a key or a store."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

import msgspec

from ductor.model.errors import ErrorCode, refuse

ANY_ENVIRONMENT: Final = "*"
"""In a key's environment lists: every environment of the tenant."""


class Scope(StrEnum):
    """What a key may be allowed to do; the wire form is the value."""

    DEFINITION_READ = "workflow_definition:read"
    DEFINITION_WRITE = "workflow_definition:write"
    WORKFLOW_READ = "workflow:read"
    WORKFLOW_WRITE = "workflow:write"
    RUN_READ = "workflow_run:read"
    RUN_WRITE = "workflow_run:write"
    EVENTS_PUBLISH = "workflow_events:publish"
    BRIDGE_WORK = "bridge:work"
    ADMIN = "admin"


ALL_SCOPES: Final = frozenset(Scope)
NON_ADMIN_SCOPES: Final = ALL_SCOPES - {Scope.ADMIN}

_VIEWER: Final = frozenset({Scope.DEFINITION_READ, Scope.WORKFLOW_READ, Scope.RUN_READ})

ROLE_SCOPES: Final[dict[str, frozenset[Scope]]] = {
    "viewer": _VIEWER,
    "operator": _VIEWER | {Scope.WORKFLOW_WRITE, Scope.RUN_WRITE, Scope.EVENTS_PUBLISH},
    "author": _VIEWER | {Scope.DEFINITION_WRITE, Scope.WORKFLOW_WRITE},
    "admin": ALL_SCOPES,
    "worker": frozenset({Scope.BRIDGE_WORK}),
}
"""The built-in roles. Any other role is a plain name for approval audiences and grants no scope."""


class Caller(msgspec.Struct, frozen=True):
    """An authenticated API key. `scopes` are effective: the key's own and those its built-in roles bundle.

    `user` names whom the key was issued to, for approval audiences; empty: nobody in particular.
    """

    key_id: str
    tenant: str
    scopes: frozenset[str]
    roles: frozenset[str] = frozenset()
    environments_read: frozenset[str] = frozenset({ANY_ENVIRONMENT})
    environments_write: frozenset[str] = frozenset({ANY_ENVIRONMENT})
    default_environment: str = "default"
    user: str = ""

    def may_write(self, environment: str) -> bool:
        """Whether the key may change what belongs to `environment`."""
        return ANY_ENVIRONMENT in self.environments_write or environment in self.environments_write

    def may_read(self, environment: str) -> bool:
        """Whether the key may see what belongs to `environment`; what it may write it may see."""
        own = self.environments_read
        return ANY_ENVIRONMENT in own or environment in own or self.may_write(environment)


def effective_scopes(scopes: frozenset[str], roles: frozenset[str]) -> frozenset[str]:
    """The scopes given directly, and those of each built-in role."""
    return scopes.union(*(ROLE_SCOPES.get(role, frozenset()) for role in roles))


def require(caller: Caller, scope: Scope | str) -> None:
    """Refuse with PERMISSION_DENIED (`SCOPE_MISSING`) unless the caller has `scope`."""
    if scope not in caller.scopes:
        raise refuse(
            ErrorCode.PERMISSION_DENIED,
            "SCOPE_MISSING",
            f"this API key lacks the scope {scope}; ask an administrator for a key that has it",
        )


QUEUE_ROLE: Final = "queue:"
"""A role `queue:<task type>` (or a prefix: `queue:billing.*`) limits a key to these queues of bridge tasks."""


def require_queue(caller: Caller, task_type: str, field: str) -> None:
    """Refuse with PERMISSION_DENIED `QUEUE_NOT_ALLOWED` when the key's roles limit it to other queues."""
    names = [role.removeprefix(QUEUE_ROLE) for role in caller.roles if role.startswith(QUEUE_ROLE)]
    if names and not any(_covers(name, task_type) for name in names):
        message = f"this API key may work on {', '.join(sorted(names))} only"
        raise refuse(ErrorCode.PERMISSION_DENIED, "QUEUE_NOT_ALLOWED", message, field)


def _covers(name: str, task_type: str) -> bool:
    return task_type.startswith(name[:-1]) if name.endswith(".*") else task_type == name


def require_authority(caller: Caller, environment: str) -> None:
    """Refuse with PERMISSION_DENIED `ENVIRONMENT_NOT_WRITABLE` unless the caller may change what is in it."""
    if not caller.may_write(environment):
        message = f"this API key may not write to the environment {environment[:100]!r}"
        raise refuse(ErrorCode.PERMISSION_DENIED, "ENVIRONMENT_NOT_WRITABLE", message, "environment")


def require_tenant(caller: Caller, tenant: str | None) -> None:
    """Check the `X-Tenant-ID` header: absent is INVALID_ARGUMENT, another tenant than the key's PERMISSION_DENIED."""
    if not tenant:
        raise refuse(
            ErrorCode.INVALID_ARGUMENT,
            "TENANT_REQUIRED",
            "name the tenant's UUID in X-Tenant-ID",
            "X-Tenant-ID",
        )
    if tenant != caller.tenant:
        raise refuse(
            ErrorCode.PERMISSION_DENIED, "TENANT_MISMATCH", "this API key belongs to another tenant", "X-Tenant-ID"
        )
