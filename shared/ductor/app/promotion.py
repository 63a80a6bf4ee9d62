"""Promotion: a published version of one environment becomes a version of another one, content unchanged."""

from __future__ import annotations

from ductor.app.access import Caller, Scope, require
from ductor.app.definition_views import Published
from ductor.app.definitions import Definitions
from ductor.app.library import DEF, Library, definition_pk
from ductor.app.refusals import invalid, precondition
from ductor.app.tenants import Tenants
from ductor.model.enums import DefinitionStatus
from ductor.model.errors import ErrorCode, refuse
from ductor.ports import Check, Table


class Promotions:
    """The only way into an environment that requires promotion."""

    def __init__(self, table: Table, definitions: Definitions, tenants: Tenants) -> None:
        self._library = Library(table)
        self._definitions = definitions
        self._tenants = tenants

    def promote(self, caller: Caller, definition_id: str, environment: str) -> Published:
        """Write the published version `definition_id` as the next version of its family in `environment`.

        It is validated again, against the connections, variables and plan that hold there. `published` is the new
        version, `draft` the version that it was made of. Refuses with NOT_FOUND, FAILED_PRECONDITION
        `DEFINITION_NOT_PUBLISHED` or `DEFINITION_ARCHIVED`, INVALID_ARGUMENT `ENVIRONMENT_UNKNOWN` or
        `ENVIRONMENT_NOT_WRITABLE` (403 when it is the key that lacks authority), or all violations at once.
        """
        require(caller, Scope.DEFINITION_WRITE)
        source, version = self._library.row(caller.tenant, definition_id)
        if source.status is DefinitionStatus.DRAFT:
            message = "only a published version can be promoted; publish the draft first"
            raise precondition("DEFINITION_NOT_PUBLISHED", message, "definition_id")
        if source.status is DefinitionStatus.ARCHIVED:
            message = "this version is archived; promote another one"
            raise precondition("DEFINITION_ARCHIVED", message, "definition_id")
        if source.document.get("environment") == environment:
            raise invalid("FIELD_INVALID", "the version is in this environment already", "environment")
        self._require_target(caller, environment)
        # An archive of the source between the look and the write wins.
        guard = Check(definition_pk(source.tenant, source.id), DEF, version)
        document = {**source.document, "environment": environment}
        return self._definitions.add_promoted(caller, source, document, guard)

    def _require_target(self, caller: Caller, key: str) -> None:
        environment = self._tenants.environment(caller.tenant, key)
        if environment is None or not environment.active:
            message = f"there is no active environment {key[:100]!r}; name one by its key"
            raise invalid("ENVIRONMENT_UNKNOWN", message, "environment")
        if not caller.may_write(key):
            message = f"this API key may not write to the environment {key!r}"
            raise refuse(ErrorCode.PERMISSION_DENIED, "ENVIRONMENT_NOT_WRITABLE", message, "environment")
        if not environment.open_to_promotion:
            message = f"the environment {key!r} takes no changes at all, promotions neither"
            raise invalid("ENVIRONMENT_NOT_WRITABLE", message, "environment")
