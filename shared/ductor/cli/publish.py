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
    text, document = read(source)
    try:
        draft = replaced(client, document)["data"]
        answer = client.publish(str(draft["id"]), int(draft["draft_revision"]))
    except Refused as refused:
        raise located(refused, source.name, text) from refused
    version = answer["published"]
    remarks = "".join(f"\n  {remark(item)}" for item in answer.get("warnings") or ())
    return f"{version['family_slug']} version {version['version']} ({version['id']}){remarks}"


def read(source: Source) -> tuple[str, Document]:
    """The text and document of a file. Raises Failure with every reason why it is none."""
    try:
        text = source.data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Failure(f"{source.name} is not UTF-8 text") from error
    document, faults = read_source(text, as_json=source.name.endswith(".json"))
    if faults or not isinstance(document, dict):
        details = tuple(f"{fault.field or source.name}: {fault.message} ({fault.code})" for fault in faults)
        raise Failure(f"{source.name} is not a definition", details=details)
    return text, document


def replaced(client: Client, document: Document, revision: int | None = None) -> Document:
    """The answer after the draft was made equal to `document`; a family without a draft gets one unless `revision`.

    Somebody else's edit in between, or since `revision`, is refused, not overwritten.
    """
    if revision is None:
        try:
            return client.request("POST", "/api/workflow-definitions", body=document)
        except Refused as refused:
            if "DRAFT_EXISTS" not in refused.codes:
                raise
    drafts = client.family(str(document.get("family_slug") or ""), "draft")
    if not drafts:
        raise Failure("the family has no draft", hint="make one with `ductor workflow create`")
    draft = drafts[0]
    gone = dict.fromkeys(DOCUMENT.fields.keys() - document.keys() - _KEPT - SERVER_OWNED)
    expected = draft["draft_revision"] if revision is None else revision
    changes = {**gone, **document, "expected_draft_revision": expected}
    return client.request("PATCH", f"/api/workflow-definitions/{draft['id']}/draft", body=changes)


def located(refused: Refused, name: str, text: str) -> Refused:
    """The same refusal, each fault with the line of the file it is about."""
    lines = Lines(text)
    places = (lines.of(str(item.get("field", ""))) for item in refused.items)
    refused.details = tuple(
        f"{name}{f':{line}' if line else ''}: {detail}" for line, detail in zip(places, refused.details, strict=False)
    )
    return refused


def remark(item: Document) -> str:
    """One warning of an answer as a line."""
    place = f"{item['field']}: " if item.get("field") else ""
    return f"{item.get('severity', 'warning')}: {place}{item.get('message', '')} [{item.get('code', '')}]"
