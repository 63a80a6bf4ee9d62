"""`ductor workflow export`: the global system definitions, straight from the data file. Talks to no server."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import typer

from ductor.cli.failure import Exit, Failure


def run(families: Sequence[str], *, data: Path) -> None:
    """Print one YAML document per family. Raises Failure when there is no data file, or a named family is missing."""
    from ductor.bootstrap.local_folder import system_definitions
    from ductor.bootstrap.local_settings import StartError
    from ductor.cli.definitions import envelope

    try:
        found = {row.family_slug: row for row in system_definitions(data)}
    except StartError as error:
        raise Failure(str(error), hint="name the data folder with --data") from error
    missing = [name for name in families if name not in found]
    if missing:
        hint = "this reads the files of DUCTOR_WORKFLOWS_DIR; a tenant's are read with `ductor workflow show --yaml`"
        raise Failure(f"no system definition of the family {missing[0]!r}", code=Exit.FAILED, hint=hint)
    rows = [found[name] for name in families] if families else list(found.values())
    typer.echo("---\n".join(envelope(row.document) for row in rows), nl=False)
