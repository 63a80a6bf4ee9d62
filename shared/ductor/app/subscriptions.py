"""Which families may be started by an event: an index from patterns to families, never itself the truth.

What an event starts is what the family's newest versions say, and the family's row moves to them at publication in one
write. A row here only says where to look: one too many costs a read. So rows are written before a publication, and
those that no newest version needs any more are removed after it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from ductor.app.library import Library
from ductor.model.definition import DefinitionRow
from ductor.model.json import JSON
from ductor.ports import MAX_OPS_PER_WRITE, Delete, Expect, Item, Op, Put, Table, UnavailableError

_TRIES: Final = 20
PAGE: Final = 100


class Subscriptions:
    """Rows `TS#<tenant>#<first segment>`/`<pattern>#<family>`. A row's version is that of the definition's version.

    It only ever rises: who cleans up after version n leaves alone what a later publication has written, even before
    that one is visible.
    """

    def __init__(self, table: Table, library: Library) -> None:
        self._table = table
        self._library = library

    def cover(self, row: DefinitionRow) -> None:
        """Let the events that a version listens to find its family; before the version is published."""
        keys = [_key(row.tenant, pattern, row.family_slug) for pattern in sorted(patterns_of(row.document))]
        for first in range(0, len(keys), MAX_OPS_PER_WRITE):
            self._raise(keys[first : first + MAX_OPS_PER_WRITE], row.version)

    def _raise(self, keys: Sequence[tuple[str, str]], number: int) -> None:
        for _ in range(_TRIES):
            known = self._table.batch_get(keys)
            ops: list[Op] = []
            for pk, sk in keys:
                item = known.get((pk, sk))
                if item is None or item.version < number:
                    ops.append(Put(Item(pk=pk, sk=sk, version=number), item.version if item else Expect.ABSENT))
            if not ops or self._table.write(ops) is None:
                return
        raise UnavailableError(f"lost {_TRIES} races in a row for the subscriptions of a family")

    def trim(self, row: DefinitionRow, before: str) -> None:
        """Remove what `before` (a definition id, or nothing) needed and no newest version needs, after a publication.

        An outage ends it silently: what stays only costs reads.
        """
        with suppress(UnavailableError):
            old = patterns_of(self._document(row.tenant, before)) if before else set()
            if old:
                family, _ = self._library.family(row.tenant, row.family_slug)
                documents = [self._document(row.tenant, one) for one in family.newest_in.values()]
                self._remove(row, old.difference(*map(patterns_of, documents)))

    def _document(self, tenant: str, definition_id: str) -> dict[str, JSON]:
        return self._library.row(tenant, definition_id)[0].document

    def _remove(self, row: DefinitionRow, patterns: Iterable[str]) -> None:
        for pattern in sorted(patterns):
            pk, sk = _key(row.tenant, pattern, row.family_slug)
            item = self._table.get(pk, sk)
            if item is not None and item.version <= row.version:
                self._table.write((Delete(pk, sk, item.version),))

    def heard(self, tenant: str, names: Collection[str]) -> Collection[str]:
        """Those of these events, which share their first segment, that may start a run of any family. One read.

        Consistent: what happens after a publication is heard. All of them when there are too many rows to look at.
        """
        page = self._table.query(_partition(tenant, next(iter(names), "")), limit=PAGE)
        patterns = {item.sk.rsplit("#", 1)[0] for item in page.items}
        if page.cursor is not None:
            return names
        return {name for name in names if any(matches(pattern, name) for pattern in patterns)}

    def families(self, tenant: str, event_name: str) -> list[str]:
        """The slugs of families that may be started by the event, in order; consistent."""
        page = self._table.query(_partition(tenant, event_name), limit=PAGE)
        if page.cursor is None:  # few enough to look at all of them at once
            pairs = [item.sk.rsplit("#", 1) for item in page.items]
            return sorted({slug for pattern, slug in pairs if matches(pattern, event_name)})
        return sorted({slug for pattern in _candidates(event_name) for slug in self._of(tenant, pattern)})

    def _of(self, tenant: str, pattern: str) -> Iterator[str]:
        pk, prefix = _partition(tenant, pattern), f"{pattern}#"
        cursor: str | None = None
        while True:
            page = self._table.query(pk, prefix=prefix, cursor=cursor)
            # A longer pattern may begin like this one; a slug never holds a #.
            yield from (item.sk.removeprefix(prefix) for item in page.items if "#" not in item.sk[len(prefix) :])
            cursor = page.cursor
            if cursor is None:
                return


def matches(pattern: str, event_name: str) -> bool:
    """Whether a literal name, or a suffix wildcard like `a.b.*`, means the event. `a.b.*` does not mean `a.b`."""
    if pattern.endswith(".*"):
        return event_name.startswith(pattern[:-1]) and len(event_name) > len(pattern) - 1
    return pattern == event_name


def patterns_of(document: Mapping[str, Any]) -> set[str]:
    """All patterns of a valid document's triggers."""
    return {pattern for trigger in document.get("triggers") or () for pattern in trigger.get("patterns") or ()}


def _candidates(event_name: str) -> list[str]:
    """Every pattern that means the event."""
    parts = event_name.split(".")
    wild = [".".join(parts[:count]) + ".*" for count in range(1, len(parts))]
    return [event_name, *(pattern for pattern in wild if matches(pattern, event_name))]


def _partition(tenant: str, pattern: str) -> str:
    return f"TS#{tenant}#{pattern.partition('.')[0]}"


def _key(tenant: str, pattern: str, slug: str) -> tuple[str, str]:
    return _partition(tenant, pattern), f"{pattern}#{slug}"
