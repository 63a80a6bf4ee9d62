"""Fuzzes a running server along its own OpenAPI document: no 5xx, and no answer that the document does not describe.

Needs schemathesis, which is no dependency of the tests: `make schema-fuzz` installs it beside them.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

import httpx
from tests.e2e.server import Server, publish

CHECKS: Final = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_headers_conformance",
    "response_schema_conformance",
)
ADMIN: Final = "^/api/(admin|environments|connections|variables)"
WAITING: Final = "^/api/v2/bridge-tasks:poll"
"""Waits up to 20 s for a task, so it has a round of its own, in which the others' time does not go by."""

ROUNDS: Final = (
    ("env", ("--exclude-path-regex", f"{ADMIN}|{WAITING}"), 50),
    ("env", ("--include-path-regex", WAITING), 45),
    ("admin.env", ("--include-path-regex", ADMIN), 50),
)
"""Whose key, which routes, and for how many seconds."""

LONGEST_ANSWER_S: Final = 30


def main(command: str) -> int:
    """The exit code of the first round that finds something, else 0. `command` is schemathesis's own."""
    command = str(Path(command).absolute())
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "data"
        server = Server(data, {})
        server.start()
        try:
            with server.client() as client:
                _fill(client)
            for env, choice, seconds in ROUNDS:
                code = subprocess.run(
                    _round(command, server.url, data / env, choice, seconds), cwd=folder, check=False
                ).returncode
                if code:
                    return code
        finally:
            server.stop()
    return 0


def _fill(client: httpx.Client) -> None:
    """Something to list and to read."""
    steps = [{"ref": "say", "type": "action", "action": "core.echo", "args": {"n": 1}}]
    version = publish(client, {"family_slug": "fuzzed", "steps": steps})
    client.post(f"/api/v2/workflow-definitions/{version}:trigger", json={}).raise_for_status()


def _round(command: str, url: str, env: Path, choice: tuple[str, str], seconds: int) -> list[str]:
    lines = env.read_text().splitlines()
    values = dict(line.removeprefix("export ").split("=", 1) for line in lines)
    return [
        *(command, "run", f"{url}/openapi.json", "--checks", ",".join(CHECKS), *choice),
        *(
            "-H",
            f"Authorization: Bearer {values['DUCTOR_API_KEY']}",
            "-H",
            f"X-Tenant-ID: {values['DUCTOR_TENANT_ID']}",
        ),
        *(
            "--phases",
            "examples,coverage,fuzzing",
            "--max-time",
            str(seconds),
            "--request-timeout",
            str(LONGEST_ANSWER_S),
            "--seed",
            "1",
            "--max-failures",
            "20",
        ),
        *("--generation-database", ":memory:", "--suppress-health-check", "all", "--warnings", "off"),
    ]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
