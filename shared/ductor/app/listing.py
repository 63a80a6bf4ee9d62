"""Lists of definitions: filtering and paging over the small entries that stand beside the definitions."""

from __future__ import annotations

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
    position = unseal(bound_to, cursor)
    found: list[Card] = []
    scanned = 0
    high = position
    while True:
        page = table.query(f"DL#{tenant}", low="0" if high else None, high=high, limit=100, descending=True)
        for item in page.items:
            if item.sk == high:
                continue
            scanned += 1
            high_after = item.sk
            card = unpack(item.body, Card)
            if _matches(card, wanted, status):
                found.append(card)
            if len(found) == size or scanned == MAX_SCANNED:
                return _page(library, tenant, found, seal(bound_to, high_after))
        if page.cursor is None or not page.items:
            return _page(library, tenant, found, None)
        high = page.items[-1].sk


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
