"""`ductor workflow publish`: a definition file becomes a new version. The draft is made equal to the file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import typer

from ductor.cli.access import find
from ductor.cli.client import Client, Refused
from ductor.cli.failure import Failure
from ductor.cli.lines import Lines
from ductor.cli.sources import Source, collect
from ductor.validation.document_shape import DOCUMENT, SERVER_OWNED
from ductor.validation.source import read_source

Document = dict[str, Any]

_KEPT: Final = frozenset({"environment", "family_slug"})
"""Fields that a draft keeps when the file does not mention them."""


def run(names: Sequence[str], *, data: Path) -> None:
    """Publish each file. Raises Failure at the first that is refused; those before it stay published."""
    sources = collect(names)
    with Client(find(data)) as client:
        for source in sources:
            typer.echo(publish(client, source))


def publish(client: Client, source: Source) -> str:
    """Create or replace the family's draft, and publish exactly that revision. A sentence about what came of it."""
    text, document = _read(source)
    try:
        draft = _saved(client, document)
        answer = client.publish(str(draft["id"]), int(draft["draft_revision"]))
    except Refused as refused:
        raise _located(refused, source.name, text) from refused
    version = answer["published"]
    remarks = "".join(f"\n  {_remark(item)}" for item in answer.get("warnings") or ())
    return f"{version['family_slug']} version {version['version']} ({version['id']}){remarks}"


def _read(source: Source) -> tuple[str, Document]:
    try:
        text = source.data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Failure(f"{source.name} is not UTF-8 text") from error
    document, faults = read_source(text, as_json=source.name.endswith(".json"))
    if faults or not isinstance(document, dict):
        details = tuple(f"{fault.field or source.name}: {fault.message} ({fault.code})" for fault in faults)
        raise Failure(f"{source.name} is not a definition", details=details)
    return text, document


def _saved(client: Client, document: Document) -> Document:
    """The draft after it was made equal to `document`. Somebody else's edit in between is refused, not overwritten."""
    try:
        return client.create_definition(document)
    except Refused as refused:
        if "DRAFT_EXISTS" not in refused.codes:
            raise
    drafts = client.definitions(family_slug=str(document["family_slug"]), status="draft")
    if not drafts:
        raise Failure("the draft was deleted at this moment", hint="run the command again")
    draft = drafts[0]
    gone = dict.fromkeys(DOCUMENT.fields.keys() - document.keys() - _KEPT - SERVER_OWNED)
    changes = {**gone, **document, "expected_draft_revision": draft["draft_revision"]}
    return client.edit_draft(str(draft["id"]), changes)


def _located(refused: Refused, name: str, text: str) -> Refused:
    """The same refusal, each fault with the line of the file it is about."""
    lines = Lines(text)
    places = (lines.of(str(item.get("field", ""))) for item in refused.items)
    refused.details = tuple(
        f"{name}{f':{line}' if line else ''}: {detail}" for line, detail in zip(places, refused.details, strict=False)
    )
    return refused


def _remark(item: Document) -> str:
    place = f"{item['field']}: " if item.get("field") else ""
    return f"{item.get('severity', 'warning')}: {place}{item.get('message', '')} [{item.get('code', '')}]"
