"""The hello world against a running server: draft, publish, trigger, watch, result. Every step is a public API call."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from rich.console import Console

from ductor.cli.access import Access, find
from ductor.cli.client import Client, Refused
from ductor.cli.failure import Failure
from ductor.cli.follow import follow, require_completed
from ductor.cli.screen import console as standard_output
from ductor.cli.screen import plain, span

FAMILY: Final = "hello_demo"
"""Not `hello_world`: that slug stays free for whoever follows the guide by hand."""

DOCUMENT: Final[dict[str, Any]] = {
    "environment": "default",
    "family_slug": FAMILY,
    "title": "Hello World",
    "steps": [
        {
            "ref": "greet",
            "type": "STEP_TYPE_DATAFLOW",
            "title": "Build greeting",
            "args": {
                "operation": "project",
                "input_expr": "TRIGGER",
                "redaction_policy": "none",
                "project": {"message": '"hello"'},
            },
        },
        {"ref": "pause", "type": "STEP_TYPE_WAIT", "title": "Short delay", "args": {"duration": "2s"}},
    ],
    "edges": [{"source_ref": "greet", "target_ref": "pause", "type": "EDGE_TYPE_SUCCESS"}],
}

Document = dict[str, Any]


def run(data: Path) -> None:
    """The `demo` command. Raises Failure unless the run completes with its greeting."""
    walk_through(find(data), standard_output())


def walk_through(access: Access, console: Console) -> None:
    """Create or reuse the family, publish, trigger, follow, and print what came out."""
    with Client(access) as client:
        version = _published(client, console)
        answer = client.trigger(str(version["id"]), {"subject_type": "demo", "subject_id": "1"})
        run_id = str(answer["run_id"])
        console.print(plain(f"triggered  run {run_id}"), soft_wrap=True)
        snapshot = follow(client, run_id, FAMILY, console)
        require_completed(snapshot)
        summary = client.run(run_id).get("summary") or {}
    console.print(f"result     [bold green]{plain(json.dumps(_greeting(snapshot)))}[/]", soft_wrap=True)
    took = span(summary.get("started_at"), summary.get("finished_at"))
    console.print(plain(f"completed  in {took}, durable from the first answer on"))
    console.print(plain(f"look at it {access.url}/console/#/runs/{run_id}"), soft_wrap=True)


def _published(client: Client, console: Console) -> Document:
    """The version to run: published now from a new draft, or the newest that an earlier demo left."""
    try:
        draft = client.create_definition(DOCUMENT)
    except Refused as refused:
        if "ALREADY_EXISTS" not in refused.codes:
            raise
        return _earlier(client, console)
    console.print(plain(f"created    draft {draft['id']} of {FAMILY}"), soft_wrap=True)
    return _publish(client, draft, console)


def _earlier(client: Client, console: Console) -> Document:
    rows = client.family(FAMILY)
    versions = [row for row in rows if "PUBLISHED" in str(row.get("status")).upper()]
    if versions:
        newest = max(versions, key=lambda row: int(row.get("version") or 0))
        console.print(plain(f"reuse      version {newest.get('version')} of {FAMILY}"))
        return newest
    drafts = [row for row in rows if "DRAFT" in str(row.get("status")).upper()]
    if not drafts:
        raise Failure(
            f"every version of {FAMILY} is archived", hint="delete nothing: trigger a family of your own instead"
        )
    return _publish(client, drafts[0], console)


def _publish(client: Client, draft: Document, console: Console) -> Document:
    version: Document = client.publish(str(draft["id"]), int(draft["draft_revision"]))["published"]
    console.print(plain(f"published  version {version.get('version')}, immutable from now on"))
    return version


def _greeting(snapshot: Document) -> Any:
    """The greeting out of the step's output, which the snapshot carries as JSON text."""
    output = ((snapshot.get("nodes") or {}).get("greet") or {}).get("latest_output_json")
    found = json.loads(output).get("result") if output else None
    if found is None:
        raise Failure(
            "the run completed without the greeting", hint=f"the family {FAMILY} was changed; look at its draft"
        )
    return found
