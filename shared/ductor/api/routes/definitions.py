"""Workflow definitions: drafts, publication, versions."""

from __future__ import annotations

from typing import Final

from ductor.api.call import Call, violation_items
from ductor.api.models.common import EmptyBody, WarningItem, Wrapped, WrappedPage
from ductor.api.models.definitions import (
    LIST_PARAMETERS,
    Compared,
    DefinitionCard,
    DefinitionDetail,
    DefinitionDiff,
    DefinitionDocument,
    Deleted,
    DraftEdit,
    DuplicateBody,
    EdgesDiff,
    PublishBody,
    PublishedDefinition,
    SavedDefinition,
    StepsDiff,
    Validation,
)
from ductor.api.routing import Route
from ductor.app.definition_views import DefinitionView, Difference, Saved
from ductor.app.definitions import Definitions
from ductor.app.listing import DefinitionFilter
from ductor.model.errors import Severity

_ROOT: Final = "/api/workflow-definitions"
_ONE: Final = f"{_ROOT}/<definition_id>"
_READ: Final = "workflow_definition:read"
_WRITE: Final = "workflow_definition:write"


class DefinitionRoutes:
    """`/api/workflow-definitions`."""

    def __init__(self, definitions: Definitions) -> None:
        self._definitions = definitions

    def routes(self) -> tuple[Route, ...]:
        return (*self._of_documents(), *self._of_lives())

    def _of_documents(self) -> tuple[Route, ...]:
        one, wrapped = Wrapped[DefinitionDetail], SavedDefinition
        return (
            Route("POST", _ROOT, "Create a draft", self._create, wrapped, DefinitionDocument, scope=_WRITE, status=201),
            Route(
                "GET",
                _ROOT,
                "List definitions",
                self._list,
                WrappedPage[DefinitionCard],
                query=LIST_PARAMETERS,
                scope=_READ,
            ),
            Route("GET", _ONE, "Read a definition", self._get, one, scope=_READ),
            Route(
                "GET",
                f"{_ONE}/diff",
                "Compare two definitions",
                self._diff,
                Wrapped[DefinitionDiff],
                query=("against",),
                scope=_READ,
            ),
            Route("PATCH", f"{_ONE}/draft", "Edit a draft", self._edit, wrapped, DraftEdit, scope=_WRITE),
            Route("DELETE", f"{_ONE}/draft", "Delete a draft", self._delete, Wrapped[Deleted], scope=_WRITE),
        )

    def _of_lives(self) -> tuple[Route, ...]:
        one, wrapped = Wrapped[DefinitionDetail], SavedDefinition
        return (
            Route(
                "POST",
                f"{_ONE}/publish",
                "Publish a draft",
                self._publish,
                PublishedDefinition,
                PublishBody,
                scope=_WRITE,
            ),
            Route("POST", f"{_ONE}/validate", "Validate", self._validate, Wrapped[Validation], EmptyBody, scope=_READ),
            Route("POST", f"{_ONE}/archive", "Archive a version", self._archive, one, EmptyBody, scope=_WRITE),
            Route(
                "POST",
                f"{_ONE}/duplicate",
                "Copy into a new family",
                self._duplicate,
                wrapped,
                DuplicateBody,
                scope=_WRITE,
                status=201,
            ),
        )

    def _create(self, call: Call) -> SavedDefinition:
        return _saved(call, self._definitions.create(call.caller, call.document()))

    def _list(self, call: Call) -> WrappedPage[DefinitionCard]:
        query = call.query(*LIST_PARAMETERS)
        wanted = DefinitionFilter(
            status=query.text("status") or "",
            q=query.text("q") or "",
            tags=query.texts("tags"),
            family_slug=query.text("family_slug") or "",
        )
        page = self._definitions.list(call.caller, wanted, query.integer("limit"), query.text("cursor"))
        return WrappedPage(
            data=[DefinitionCard.model_validate(card) for card in page.items],
            next_cursor=page.next_cursor,
            metadata=call.metadata(),
        )

    def _get(self, call: Call) -> Wrapped[DefinitionDetail]:
        found = self._definitions.get(call.caller, call.ids["definition_id"])
        return Wrapped(data=definition_detail(found), metadata=call.metadata())

    def _diff(self, call: Call) -> Wrapped[DefinitionDiff]:
        against = call.query("against").text("against")
        found = self._definitions.diff(call.caller, call.ids["definition_id"], against)
        return Wrapped(data=_diff(found), metadata=call.metadata())

    def _edit(self, call: Call) -> SavedDefinition:
        return _saved(call, self._definitions.edit(call.caller, call.ids["definition_id"], call.document()))

    def _delete(self, call: Call) -> Wrapped[Deleted]:
        self._definitions.delete_draft(call.caller, call.ids["definition_id"])
        return Wrapped(data=Deleted(id=call.ids["definition_id"]), metadata=call.metadata())

    def _publish(self, call: Call) -> PublishedDefinition:
        body = call.body(PublishBody)
        done = self._definitions.publish(call.caller, call.ids["definition_id"], body.expected_draft_revision)
        return PublishedDefinition(
            published=definition_detail(done.published),
            draft=definition_detail(done.draft),
            warnings=violation_items(done.warnings, WarningItem),
            metadata=call.metadata(),
        )

    def _validate(self, call: Call) -> Wrapped[Validation]:
        call.body(EmptyBody)
        found = self._definitions.validate(call.caller, call.ids["definition_id"])
        data = Validation.model_validate(
            {
                "valid": not any(item.severity is Severity.ERROR for item in found.violations),
                "violations": violation_items(found.violations, WarningItem),
                "next_occurrences": found.upcoming,
            }
        )
        return Wrapped(data=data, metadata=call.metadata())

    def _archive(self, call: Call) -> Wrapped[DefinitionDetail]:
        call.body(EmptyBody)
        return Wrapped(
            data=definition_detail(self._definitions.archive(call.caller, call.ids["definition_id"])),
            metadata=call.metadata(),
        )

    def _duplicate(self, call: Call) -> SavedDefinition:
        body = call.body(DuplicateBody)
        return _saved(call, self._definitions.duplicate(call.caller, call.ids["definition_id"], body.family_slug))


def _saved(call: Call, saved: Saved) -> SavedDefinition:
    return SavedDefinition(
        data=definition_detail(saved.definition),
        warnings=violation_items(saved.warnings, WarningItem),
        metadata=call.metadata(),
    )


def _diff(found: Difference) -> DefinitionDiff:
    changes = found.comparison
    return DefinitionDiff.model_validate(
        {
            "before": _compared(found.before),
            "after": _compared(found.after),
            "identical": changes.identical,
            "fields": changes.fields,
            "steps": StepsDiff.model_validate(
                {"added": changes.steps_added, "removed": changes.steps_removed, "changed": changes.steps_changed}
            ),
            "edges": EdgesDiff.model_validate(
                {"added": changes.edges_added, "removed": changes.edges_removed, "changed": changes.edges_changed}
            ),
        }
    )


def _compared(view: DefinitionView) -> Compared:
    return Compared(
        id=view.id,
        family_slug=view.family_slug,
        status=view.status.wire,
        version=view.version,
        draft_revision=view.draft_revision,
    )


def definition_detail(view: DefinitionView) -> DefinitionDetail:
    """A definition as it is answered: the document's fields and, winning over them, what the server says."""
    return DefinitionDetail.model_validate(
        {
            **view.document,
            "id": view.id,
            "status": view.status.wire,
            "family_slug": view.family_slug,
            "version": view.version,
            "draft_revision": view.draft_revision,
            "created_at": view.created_at,
            "updated_at": view.updated_at,
            "published_at": view.published_at,
            "created_by": view.created_by,
            "updated_by": view.updated_by,
        }
    )
