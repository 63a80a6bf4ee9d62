"""Lists of definitions: filtering and paging over the small entries that stand beside the definitions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec

from ductor.app.cursors import binding, page_size, seal, unseal
from ductor.app.library import Card, Library, unpack
from ductor.app.refusals import invalid
from ductor.model.enums import DefinitionStatus
from ductor.ports import Table

MAX_SCANNED: Final = 2_000
"""Entries looked at for one page. A page may then be short, or even empty, and still have a next one."""


class DefinitionFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which definitions to list. `q` is searched in slug, title, description and tags; all `tags` must be present."""

    status: str = ""
    q: str = ""
    tags: tuple[str, ...] = ()
    family_slug: str = ""


class DefinitionPage(msgspec.Struct, frozen=True):
    """One page of a list; `next_cursor` is None on the last one."""

    items: tuple[Card, ...]
    next_cursor: str | None


def list_cards(
    table: Table, library: Library, tenant: str, wanted: DefinitionFilter, limit: int | None, cursor: str | None
) -> DefinitionPage:
    """Definitions of one tenant, newest first."""
    size = page_size(limit)
    status = _status(wanted.status)
    bound_to = binding(tenant, ["definitions", msgspec.to_builtins(wanted)])
    cards = _newest_first(table, tenant, unseal(bound_to, cursor))
    found: list[Card] = []
    for scanned, (sort, card) in enumerate(cards, 1):
        if _matches(card, wanted, status):
            found.append(card)
        if len(found) == size or scanned == MAX_SCANNED:
            more = next(cards, None) is not None
            return _page(library, tenant, found, seal(bound_to, sort) if more else None)
    return _page(library, tenant, found, None)


def _newest_first(table: Table, tenant: str, before: str | None) -> Iterator[tuple[str, Card]]:
    """(sort key, entry), going on after `before` whether or not that entry still exists."""
    cursor: str | None = None
    while True:
        page = table.query(f"DL#{tenant}", high=before, low="0" if before else None, cursor=cursor, descending=True)
        for item in page.items:
            if item.sk != before:
                yield item.sk, unpack(item.body, Card)
        cursor = page.cursor
        if cursor is None:
            return


def _page(library: Library, tenant: str, cards: list[Card], next_cursor: str | None) -> DefinitionPage:
    """Drafts show the number of their next publication, which their family knows."""
    slugs = {card.family_slug for card in cards if card.status is DefinitionStatus.DRAFT}
    families = library.families(tenant, slugs)
    shown = [
        msgspec.structs.replace(card, version=families[card.family_slug].max_version + 1)
        if card.status is DefinitionStatus.DRAFT and card.family_slug in families
        else card
        for card in cards
    ]
    return DefinitionPage(tuple(shown), next_cursor)


def _status(text: str) -> DefinitionStatus | None:
    if not text:
        return None
    status = DefinitionStatus.parse(text)
    if status is None:
        raise invalid("FIELD_INVALID", "status is draft, published or archived", "status")
    return status


def _matches(card: Card, wanted: DefinitionFilter, status: DefinitionStatus | None) -> bool:
    if status is not None and card.status is not status:
        return False
    if wanted.family_slug and card.family_slug != wanted.family_slug:
        return False
    if not set(wanted.tags) <= set(card.tags):
        return False
    text = "\n".join((card.family_slug, card.title, card.description, *card.tags)).casefold()
    return wanted.q.casefold() in text
