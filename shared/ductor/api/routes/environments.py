"""Environments and their variables, for administrators; promotion of versions between environments."""

from __future__ import annotations

from typing import Final

from ductor.api.call import Call, violation_items
from ductor.api.listed import PAGED, paged
from ductor.api.models.common import WarningItem, Wrapped, WrappedPage
from ductor.api.models.environments import (
    EnvironmentDetail,
    EnvironmentFields,
    NewEnvironment,
    PromoteBody,
    PromotedDefinition,
    Release,
    RemovedVariable,
    VariableBody,
    VariableEntry,
)
from ductor.api.routes.definitions import definition_detail
from ductor.api.routing import Route
from ductor.app.access import Scope
from ductor.app.administration import Administration
from ductor.app.environments import EnvironmentChanges
from ductor.app.tenants import Environment

_ROOT: Final = "/api/environments"
_VARIABLES: Final = "/api/variables"


class EnvironmentRoutes:
    """`/api/environments`, `/api/variables` and `…/promote`."""

    def __init__(self, admin: Administration) -> None:
        self._environments = admin.environments
        self._variables = admin.variables
        self._promotions = admin.promotions

    def routes(self) -> tuple[Route, ...]:
        return (*self._of_environments(), *self._of_variables(), self._of_promotion())

    def _of_environments(self) -> tuple[Route, ...]:
        admin, one, at = Scope.ADMIN.value, Wrapped[EnvironmentDetail], f"{_ROOT}/<key>"
        return (
            Route("POST", _ROOT, "Create an environment", self._create, one, NewEnvironment, scope=admin, status=201),
            Route(
                "GET", _ROOT, "List environments", self._list, WrappedPage[EnvironmentDetail], query=PAGED, scope=admin
            ),
            Route("GET", at, "Read an environment", self._get, one, scope=admin),
            Route("PATCH", at, "Change an environment", self._update, one, EnvironmentFields, scope=admin),
        )

    def _of_variables(self) -> tuple[Route, ...]:
        admin, variable = Scope.ADMIN.value, f"{_VARIABLES}/<name>"
        return (
            Route(
                "GET",
                _VARIABLES,
                "List variables",
                self._list_variables,
                WrappedPage[VariableEntry],
                query=("environment", *PAGED),
                scope=admin,
                seeks=True,
            ),
            Route("PUT", variable, "Set a variable", self._set, Wrapped[VariableEntry], VariableBody, scope=admin),
            Route(
                "DELETE",
                variable,
                "Remove a variable",
                self._unset,
                Wrapped[RemovedVariable],
                query=("environment",),
                scope=admin,
            ),
        )

    def _of_promotion(self) -> Route:
        return Route(
            "POST",
            "/api/workflow-definitions/<definition_id>/promote",
            "Promote a version into another environment",
            self._promote,
            PromotedDefinition,
            PromoteBody,
            scope=Scope.DEFINITION_WRITE.value,
        )

    def _create(self, call: Call) -> Wrapped[EnvironmentDetail]:
        body = call.body(NewEnvironment)
        return _one(call, self._environments.create(call.caller, body.key, _changes(body)))

    def _list(self, call: Call) -> WrappedPage[EnvironmentDetail]:
        shown = [_detail(found) for found in self._environments.list(call.caller)]
        data, cursor = paged(call, shown, lambda environment: environment.key)
        return WrappedPage(data=data, next_cursor=cursor, metadata=call.metadata())

    def _get(self, call: Call) -> Wrapped[EnvironmentDetail]:
        return _one(call, self._environments.get(call.caller, call.ids["key"]))

    def _update(self, call: Call) -> Wrapped[EnvironmentDetail]:
        changes = _changes(call.body(EnvironmentFields))
        return _one(call, self._environments.update(call.caller, call.ids["key"], changes))

    def _list_variables(self, call: Call) -> WrappedPage[VariableEntry]:
        environment = call.query("environment", *PAGED).text("environment") or call.caller.default_environment
        shown = [VariableEntry.model_validate(one) for one in self._variables.list(call.caller, environment)]
        data, cursor = paged(call, shown, lambda variable: variable.name, ("environment",))
        return WrappedPage(data=data, next_cursor=cursor, metadata=call.metadata())

    def _set(self, call: Call) -> Wrapped[VariableEntry]:
        body = call.body(VariableBody)
        done = self._variables.set(call.caller, body.environment, call.ids["name"], body.value)
        return Wrapped(data=VariableEntry.model_validate(done), metadata=call.metadata())

    def _unset(self, call: Call) -> Wrapped[RemovedVariable]:
        environment = _environment(call)
        self._variables.unset(call.caller, environment, call.ids["name"])
        gone = RemovedVariable(environment=environment, name=call.ids["name"])
        return Wrapped(data=gone, metadata=call.metadata())

    def _promote(self, call: Call) -> PromotedDefinition:
        body = call.body(PromoteBody)
        done = self._promotions.promote(call.caller, call.ids["definition_id"], body.environment)
        return PromotedDefinition(
            published=definition_detail(done.published),
            source=definition_detail(done.draft),
            warnings=violation_items(done.warnings, WarningItem),
            metadata=call.metadata(),
        )


def _environment(call: Call) -> str:
    return call.query("environment").text("environment") or call.caller.default_environment


def _changes(body: EnvironmentFields) -> EnvironmentChanges:
    release = body.release
    return EnvironmentChanges(
        title=body.title,
        description=body.description,
        active=body.active,
        mutable=body.mutable,
        direct_mutation=body.allow_direct_mutation,
        requires_promotion=body.require_promotion,
        connections=body.connections,
        require_release=release.required if release else None,
        live_deployment=release.external_deployment_id if release else None,
    )


def _one(call: Call, found: Environment) -> Wrapped[EnvironmentDetail]:
    return Wrapped(data=_detail(found), metadata=call.metadata())


def _detail(found: Environment) -> EnvironmentDetail:
    return EnvironmentDetail(
        key=found.key,
        title=found.title,
        description=found.description,
        active=found.active,
        mutable=found.mutable,
        allow_direct_mutation=found.direct_mutation,
        require_promotion=found.requires_promotion,
        connections=found.connections,
        variables=found.variables,
        release=Release(required=found.require_release, external_deployment_id=found.live_deployment),
        created_at=found.created_at,
        updated_at=found.updated_at,
    )
