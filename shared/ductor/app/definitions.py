"""Definitions: creating and editing drafts, publishing immutable versions, reading and archiving them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from ductor.app import drafts
from ductor.app.access import Caller, Scope, require, require_authority
from ductor.app.comparison import compare
from ductor.app.definition_views import DefinitionView, Difference, Published, Saved, Validated, shown
from ductor.app.draft_rules import (
    check_revision,
    draft_exists,
    expected_revision,
    family_slug_of,
    refuse_errors,
    saveable,
)
from ductor.app.installation import Known, validation_context
from ductor.app.library import (
    DEF,
    Library,
    card_item,
    card_key,
    definition_pk,
    family_item,
    row_item,
)
from ductor.app.listing import DefinitionFilter, DefinitionPage, list_cards
from ductor.app.refusals import aborted, definition_not_found, invalid, precondition
from ductor.app.schedule_moves import ScheduleMoves, key_of
from ductor.app.tenants import Tenants
from ductor.app.versions import Versions, environment_of, write_rows
from ductor.model.definition import Definition, DefinitionRow
from ductor.model.enums import DefinitionStatus
from ductor.model.errors import RefusedError, Violation
from ductor.model.json import JSON
from ductor.ports import (
    Check,
    Clock,
    CronSchedules,
    Delete,
    Expect,
    Ids,
    Op,
    Put,
    Table,
)
from ductor.schedules import preview, read_spec
from ductor.steps.spec import Catalog
from ductor.validation.completion import completed
from ductor.validation.context import Context
from ductor.validation.document import to_wire
from ductor.validation.validator import validate

_UPCOMING: Final = 5
_MAX_RACES: Final = 200
"""How often a write that lost its race is tried again. Each loss means that somebody else's write went through."""


class Definitions:
    """The definitions of all tenants; every call sees those of its caller's tenant only."""

    def __init__(
        self,
        table: Table,
        clock: Clock,
        ids: Ids,
        catalog: Catalog,
        tenants: Tenants,
        outside: CronSchedules | None = None,
    ) -> None:
        self._table = table
        self._clock = clock
        self._ids = ids
        self._catalog = catalog
        self._tenants = tenants
        self._library = Library(table)
        self._schedules = ScheduleMoves(table, outside)
        self._versions = Versions(table, clock, ids, self._library, self._schedules)

    def load(self, tenant: str, definition_id: str) -> tuple[DefinitionRow, Definition]:
        """A published version as runs execute it, cached. See `Library.load`."""
        return self._library.load(tenant, definition_id)

    def row(self, tenant: str, definition_id: str) -> DefinitionRow:
        """The row as it is now. NOT_FOUND for an unknown id and for another tenant's alike."""
        return self._library.row(tenant, definition_id)[0]

    def create(self, caller: Caller, document: Mapping[str, JSON]) -> Saved:
        """Store a new draft.

        Refuses with ALREADY_EXISTS `DRAFT_EXISTS` when the family has a draft, with INVALID_ARGUMENT what no draft
        may hold. A family that has versions but no draft starts a new one.
        """
        require(caller, Scope.DEFINITION_WRITE)
        wanted = dict(document)
        if wanted.get("environment") is None:
            wanted["environment"] = caller.default_environment
        return self._create(caller, wanted)

    def get(self, caller: Caller, definition_id: str) -> DefinitionView:
        require(caller, Scope.DEFINITION_READ)
        return self._view(self._readable(caller, definition_id))

    def list(self, caller: Caller, wanted: DefinitionFilter, limit: int | None, cursor: str | None) -> DefinitionPage:
        """Drafts and versions, newest first. Pages stay stable while definitions are written."""
        require(caller, Scope.DEFINITION_READ)
        page = list_cards(self._table, self._library, caller.tenant, wanted, limit, cursor)
        visible = tuple(card for card in page.items if caller.may_read(card.environment))
        return msgspec.structs.replace(page, items=visible)

    def edit(self, caller: Caller, definition_id: str, changes: Mapping[str, JSON]) -> Saved:
        """Apply top-level fields and `operations[]` to a draft, in order, all or nothing.

        `expected_draft_revision` is required; another current revision refuses with ABORTED `DRAFT_REVISION_CONFLICT`.
        """
        require(caller, Scope.DEFINITION_WRITE)
        expected = expected_revision(changes, required=True)
        for _ in range(_MAX_RACES):
            row, version = self._draft(caller, definition_id)
            check_revision(row, expected)
            document = drafts.edited(row.document, changes)
            self._check_environments(caller, row.document, document)
            row.document = saveable(document, row.family_slug)
            row.draft_revision += 1
            row.updated_at, row.updated_by = self._clock.now_ms(), caller.key_id
            if write_rows(self._table, [Put(row_item(row, version + 1), version), Put(card_item(row))]) is None:
                return Saved(self._view(row), self._violations(caller, row.document))
        raise _busy()

    def delete_draft(self, caller: Caller, definition_id: str) -> None:
        """Remove a draft. Its family's versions stay."""
        require(caller, Scope.DEFINITION_WRITE)
        for _ in range(_MAX_RACES):
            row, version = self._draft(caller, definition_id)
            require_authority(caller, environment_of(row))
            family, stored = self._library.family(caller.tenant, row.family_slug)
            without = msgspec.structs.replace(family, draft_id="")
            ops: list[Op] = [
                Delete(definition_pk(row.tenant, row.id), DEF, version),
                Delete(*card_key(row)),
                Put(family_item(row.tenant, without, stored + 1), stored),
            ]
            if write_rows(self._table, ops) is None:
                return
        raise _busy()

    def publish(self, caller: Caller, definition_id: str, expected_draft_revision: int | None = None) -> Published:
        """Write the draft as a new immutable version, numbered one above the family's highest.

        INVALID_ARGUMENT with every violation at once when the draft is not valid; ABORTED when an expected revision is
        given and is not the current one. Concurrent publications get consecutive numbers. The draft is not touched.
        """
        require(caller, Scope.DEFINITION_WRITE)
        checked: tuple[int, Context, tuple[Violation, ...]] | None = None
        for _ in range(_MAX_RACES):
            draft, version = self._draft(caller, definition_id)
            if expected_draft_revision is not None:
                check_revision(draft, expected_draft_revision)
            if checked is None or checked[0] != version:
                context = self._context(caller, draft.document)
                checked = version, context, self._publishable(caller, draft, context)
            family, stored = self._library.family(caller.tenant, draft.family_slug)
            row = self._versions.following(caller, draft, family, checked[1])
            reviewed = Check(definition_pk(draft.tenant, draft.id), DEF, version)
            if self._versions.write(row, family, stored, reviewed) is None:
                warnings = checked[2] + self._versions.no_changes(row, family)
                draft.version = row.version + 1
                return Published(shown(row), shown(draft), warnings)
        raise _busy()

    def add_promoted(self, caller: Caller, source: DefinitionRow, document: dict[str, JSON], guard: Check) -> Published:
        """Write `document` as the family's next version, as a publication does; `source` must hold `guard` meanwhile.

        INVALID_ARGUMENT with every violation, judged for the environment that the document names. ABORTED when the
        guard is lost. For `Promotions`, which has decided that the caller may.
        """
        context = self._context(caller, document, promoted=True)
        found = tuple(validate(document, context))
        refuse_errors(found, "the version cannot be promoted")
        for _ in range(_MAX_RACES):
            family, stored = self._library.family(caller.tenant, source.family_slug)
            row = self._versions.following(caller, msgspec.structs.replace(source, document=document), family, context)
            lost = self._versions.write(row, family, stored, guard)
            if lost is None:
                return Published(shown(row), shown(source), found)
            if lost.current is not None and (lost.current.pk, lost.current.sk) == (guard.pk, guard.sk):
                raise aborted("DEFINITION_BUSY", "the version was changed at this moment; look at it and try again")
        raise _busy()

    def validate(self, caller: Caller, definition_id: str) -> Validated:
        """All violations of a stored definition, in every severity, and the next five instants of its schedule."""
        require(caller, Scope.DEFINITION_READ)
        document = self._readable(caller, definition_id).document
        schedule = document.get("schedule")
        spec = read_spec(schedule) if isinstance(schedule, dict) else None
        upcoming = tuple(preview(spec, self._clock.now_ms(), _UPCOMING)) if spec else ()
        return Validated(self._violations(caller, document), upcoming)

    def diff(self, caller: Caller, definition_id: str, against: str | None = None) -> Difference:
        """How a definition differs from another one, by default from the newest version of its family.

        FAILED_PRECONDITION `DIFF_BASE_MISSING` when there is nothing to compare with.
        """
        after = self._readable(caller, definition_id)
        base = against or self._library.family(caller.tenant, after.family_slug)[0].newest_id
        if not base:
            raise precondition("DIFF_BASE_MISSING", "the family has no version yet; name a definition", "against")
        before = self._readable(caller, base)
        pair = (self._as_published(caller, row.document) for row in (before, after))
        return Difference(self._view(before), self._view(after), compare(*pair))

    def _as_published(self, caller: Caller, document: dict[str, JSON]) -> dict[str, JSON]:
        """The document as it is answered, with what a publication would add to it, so that only real changes show."""
        return to_wire(completed(document, self._context(caller, document)))

    def archive(self, caller: Caller, definition_id: str) -> DefinitionView:
        """Refuse new triggers of a published version for ever; runs in flight finish. Archiving twice is as once."""
        require(caller, Scope.DEFINITION_WRITE)
        for _ in range(_MAX_RACES):
            row, version = self._library.row(caller.tenant, definition_id)
            require_authority(caller, environment_of(row))
            if row.status is DefinitionStatus.DRAFT:
                raise precondition("DEFINITION_NOT_PUBLISHED", "a draft cannot be archived; delete it instead", "id")
            if row.status is DefinitionStatus.ARCHIVED:
                return self._view(row)
            row.status = DefinitionStatus.ARCHIVED
            row.updated_at, row.updated_by = self._clock.now_ms(), caller.key_id
            ops = [Put(row_item(row, version + 1), version), Put(card_item(row))]
            if write_rows(self._table, [*ops, *self._schedules.on_archive(row, row.updated_at)]) is None:
                self._schedules.settle(key_of(row))
                return self._view(row)
        raise _busy()

    def duplicate(self, caller: Caller, definition_id: str, family_slug: str) -> Saved:
        """A new draft under `family_slug`: of the family's draft, or of its newest version when it has no draft.

        It stays in the environment of what was copied; if that takes no direct changes, it goes to the key's default.
        """
        require(caller, Scope.DEFINITION_WRITE)
        row = self._readable(caller, definition_id)
        family, _ = self._library.family(caller.tenant, row.family_slug)
        source_id = family.draft_id or family.newest_id
        if source_id and source_id != row.id:
            row = self._readable(caller, source_id)
        return self._create(
            caller, {**row.document, "family_slug": family_slug, "environment": self._home(caller, row)}
        )

    def _home(self, caller: Caller, row: DefinitionRow) -> JSON:
        key = environment_of(row)
        found = self._tenants.environment(caller.tenant, key)
        open_here = found is not None and found.open_to_changes and caller.may_write(key)
        return key if open_here else caller.default_environment

    def _create(self, caller: Caller, document: dict[str, JSON]) -> Saved:
        slug = family_slug_of(document)
        self._check_environments(caller, None, document)
        document = saveable(document, slug)
        now = self._clock.now_ms()
        for _ in range(_MAX_RACES):
            family, stored = self._library.family(caller.tenant, slug)
            if family.draft_id:
                raise draft_exists(family)
            row = DefinitionRow(
                id=self._ids.uuid(),
                tenant=caller.tenant,
                family_slug=slug,
                status=DefinitionStatus.DRAFT,
                version=family.max_version + 1,
                document=document,
                draft_revision=1,
                created_at=now,
                updated_at=now,
                created_by=caller.key_id,
                updated_by=caller.key_id,
            )
            with_draft = msgspec.structs.replace(family, draft_id=row.id)
            ops: list[Op] = [
                Put(row_item(row, 1), Expect.ABSENT),
                Put(card_item(row)),
                Put(family_item(row.tenant, with_draft, stored + 1), stored or Expect.ABSENT),
            ]
            if write_rows(self._table, ops) is None:
                return Saved(shown(row), self._violations(caller, document))
        raise _busy()

    def _readable(self, caller: Caller, definition_id: str) -> DefinitionRow:
        """The row; what is in an environment that the key may not read answers like what does not exist."""
        row, _ = self._library.row(caller.tenant, definition_id)
        if not caller.may_read(environment_of(row)):
            raise definition_not_found()
        return row

    def _draft(self, caller: Caller, definition_id: str) -> tuple[DefinitionRow, int]:
        row, version = self._library.row(caller.tenant, definition_id)
        if row.status is not DefinitionStatus.DRAFT:
            raise precondition("NOT_A_DRAFT", "published versions never change; use the id of the family's draft", "id")
        return row, version

    def _publishable(self, caller: Caller, draft: DefinitionRow, context: Context) -> tuple[Violation, ...]:
        """The warnings that a publication carries; refuses when there are errors."""
        self._check_environments(caller, None, draft.document)
        found = tuple(validate(draft.document, context))
        refuse_errors(found, "the definition cannot be published")
        return found

    def _check_environments(self, caller: Caller, before: Mapping[str, JSON] | None, after: Mapping[str, JSON]) -> None:
        """Moving a draft needs authority over both environments; every write needs it over the one it ends in."""
        new = after.get("environment")
        if not isinstance(new, str):
            raise invalid("FIELD_INVALID", "name an environment by its key, for example default", "environment")
        old = before.get("environment") if before else None
        if isinstance(old, str) and old != new:
            self._tenants.require_writable(caller, old)
        self._tenants.require_writable(caller, new)

    def _violations(self, caller: Caller, document: dict[str, JSON]) -> tuple[Violation, ...]:
        return tuple(validate(document, self._context(caller, document)))

    def _context(self, caller: Caller, document: dict[str, JSON], *, promoted: bool = False) -> Context:
        known = Known(self._catalog, self._table, self._tenants, self._library, caller, promoted)
        return validation_context(known, document, self._clock.now_ms())

    def _view(self, row: DefinitionRow) -> DefinitionView:
        if row.status is DefinitionStatus.DRAFT:
            row.version = self._library.family(row.tenant, row.family_slug)[0].max_version + 1
        return shown(row)


def _busy() -> RefusedError:
    return aborted("DEFINITION_BUSY", "too many others are changing this definition at this moment; try again")
