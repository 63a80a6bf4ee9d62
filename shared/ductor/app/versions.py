"""Published versions: how one is made of a draft, and the single transaction that puts it into its family."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ductor.app.access import Caller
from ductor.app.library import Family, Library, card_item, family_item, plan_item, row_item, version_item
from ductor.app.refusals import invalid
from ductor.app.schedule_moves import ScheduleMoves, key_of
from ductor.app.subscriptions import Subscriptions
from ductor.model.definition import Definition, DefinitionRow
from ductor.model.enums import DefinitionStatus, StepType
from ductor.model.errors import Severity, Violation
from ductor.ports import Check, Clock, Conflict, Expect, Ids, ItemTooLargeError, Op, Put, Table
from ductor.steps import subworkflow
from ductor.validation.completion import completed
from ductor.validation.context import Context
from ductor.validation.document import to_definition


class Versions:
    """Makes and writes versions; whether that may be is decided before. Changes no draft."""

    def __init__(self, table: Table, clock: Clock, ids: Ids, library: Library, schedules: ScheduleMoves) -> None:
        self._table = table
        self._clock = clock
        self._ids = ids
        self._library = library
        self._subscriptions = Subscriptions(table, library)
        self._schedules = schedules

    def following(self, caller: Caller, draft: DefinitionRow, family: Family, context: Context) -> DefinitionRow:
        """The family's next version, with the document of `draft`. Nothing is stored yet."""
        now = self._clock.now_ms()
        return DefinitionRow(
            id=self._ids.uuid(),
            tenant=draft.tenant,
            family_slug=draft.family_slug,
            status=DefinitionStatus.PUBLISHED,
            version=family.max_version + 1,
            document=completed(draft.document, context),
            created_at=now,
            updated_at=now,
            published_at=now,
            created_by=caller.key_id,
            updated_by=caller.key_id,
        )

    def write(self, row: DefinitionRow, family: Family, stored: int, guard: Check) -> Conflict | None:
        """Store it, with what finds the version's event triggers written before and what nobody needs removed after.

        A conflict when the family or what `guard` checks has changed meanwhile: nothing is stored then.
        """
        self._subscriptions.cover(row)
        lost = write_rows(self._table, self._publication(row, family, stored, guard))
        if lost is None:
            self._subscriptions.trim(row, family.newest_in.get(environment_of(row), ""))
            self._schedules.settle(key_of(row))
        return lost

    def no_changes(self, row: DefinitionRow, before: Family) -> tuple[Violation, ...]:
        """A warning when the version says what the one before it said."""
        if not before.newest_id or self._library.row(row.tenant, before.newest_id)[0].document != row.document:
            return ()
        message = f"version {row.version} is identical to version {before.max_version}"
        return (Violation("", "NO_CHANGES", message, Severity.WARNING),)

    def _publication(self, row: DefinitionRow, family: Family, stored: int, reviewed: Check) -> tuple[Op, ...]:
        """The version, and its family pointing to it, if the draft is still the one that was validated."""
        newest_in = {**family.newest_in, str(row.document.get("environment")): row.id}
        newest = msgspec.structs.replace(family, newest_id=row.id, max_version=row.version, newest_in=newest_in)
        return (
            Put(row_item(row, 1), Expect.ABSENT),
            Put(plan_item(row.tenant, row.id, self._plan(row)), Expect.ABSENT),
            Put(version_item(row.tenant, row), Expect.ABSENT),
            Put(card_item(row)),
            Put(family_item(row.tenant, newest, stored + 1), stored),
            reviewed,
            *self._schedules.on_publish(row, row.published_at),
        )

    def _plan(self, row: DefinitionRow) -> Definition:
        """What runs execute. Its subworkflow steps are pinned here, to versions that never change either."""
        definition = to_definition(row.document)
        pins: dict[str, str] = {}
        for step in definition.steps:
            if step.type is StepType.SUBWORKFLOW:
                args = subworkflow.parse_args(step.args)
                pins[step.ref] = self._library.pinned_id(
                    row.tenant, args.family_slug, args.version, definition.environment
                )
        return msgspec.structs.replace(definition, pins=pins)


def environment_of(row: DefinitionRow) -> str:
    """The key of the environment that a definition is in."""
    return str(row.document.get("environment", ""))


def write_rows(table: Table, ops: Sequence[Op]) -> Conflict | None:
    """`Table.write` for definitions. INVALID_ARGUMENT `DEFINITION_TOO_LARGE`."""
    try:
        return table.write(ops)
    except ItemTooLargeError as error:
        message = "the definition is too large to store; split it into subworkflows"
        raise invalid("DEFINITION_TOO_LARGE", message) from error
