"""The guides' definition commands as printed, and the operator's folder of system definitions, on a real server."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.e2e.server import Server
from tests.unit.validation import references

from ductor.validation.source import read_source

pytestmark = pytest.mark.e2e

ACCEPTANCE = Path(__file__).parents[1] / "acceptance"
SYSTEM = """\
type: workflow_definition
definition:
  family_slug: nightly_cleanup
  title: Nightly clean-up
  environment: default
  steps:
    - {ref: pause, type: wait, args: {duration: 1s}}
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("guides")
    (folder / "system").mkdir()
    (folder / "system" / "cleanup.yaml").write_text(SYSTEM)
    (folder / "system" / "cleanup.test.yaml").write_text("type: workflow_test\nworkflow: cleanup.yaml\n")
    server = Server(folder / "data", {"DUCTOR_WORKFLOWS_DIR": str(folder / "system")})
    server.start()
    yield server
    server.stop()


def run(server: Server, *command: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    values, admin = (exported(server.data / name) for name in ("env", "admin.env"))
    values["DUCTOR_ADMIN_KEY"] = admin["DUCTOR_API_KEY"]
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, **values, "PYTHONPATH": os.pathsep.join(sys.path), "PATH": path, "COLUMNS": "200"}
    return subprocess.run(
        command, input=stdin, env=environment, capture_output=True, text=True, check=False, timeout=100
    )


def exported(path: Path) -> dict[str, str]:
    return dict(line.removeprefix("export ").split("=", 1) for line in path.read_text().splitlines())


def ductor(server: Server, *args: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    return run(server, sys.executable, "-c", "from ductor.cli.main import app; app()", *args, stdin=stdin)


@pytest.mark.parametrize(
    "script",
    ["hello_world.sh", "lead_router.sh", "operate_runs.sh", pytest.param("review_gate.sh", marks=pytest.mark.slow)],
)
def test_the_commands_of_a_guide_work_as_printed(server: Server, script: str) -> None:
    done = run(server, "bash", str(ACCEPTANCE / script))
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_json_sample_of_the_approval_guide_publishes(server: Server, tmp_path: Path) -> None:
    path = tmp_path / "review.json"
    path.write_text(references.REVIEW_JSON)
    assert "review_before_work version 1" in ductor(server, "workflow", "publish", str(path)).stdout


def test_a_definition_is_authored_from_the_command_line(server: Server, tmp_path: Path) -> None:
    path = tmp_path / "authored.yaml"
    path.write_text("family_slug: authored\nsteps:\n  - {ref: rest, type: wait, args: {duration: 1s}}\n")
    assert "revision 1" in ductor(server, "workflow", "create", str(path)).stdout
    assert "version 1" in ductor(server, "workflow", "publish", str(path)).stdout
    path.write_text(path.read_text().replace("1s", "2s"))
    assert ductor(server, "workflow", "edit", str(path)).returncode == 0
    assert "~ args.duration: 1s -> 2s" in ductor(server, "workflow", "diff", "authored").stdout
    assert "copied draft" in ductor(server, "workflow", "duplicate", "authored", "copied").stdout
    shown = ductor(server, "workflow", "show", "authored", "--yaml").stdout
    assert read_source(shown)[0]["steps"][0]["args"] == {"duration": "1s"}
    assert "archived" in ductor(server, "workflow", "archive", "authored").stdout
    assert "archived" in ductor(server, "workflow", "list", "--family", "authored").stdout


def test_system_definitions_are_exported_from_the_data_file_and_no_tenant_sees_them(server: Server) -> None:
    exported = ductor(server, "workflow", "export", "nightly_cleanup", "--data", str(server.data))
    document, faults = read_source(exported.stdout)
    assert (exported.returncode, faults) == (0, [])
    assert document["steps"][0]["args"] == {"duration": "1s"}
    assert "nightly_cleanup" not in ductor(server, "workflow", "list").stdout
    assert ductor(server, "workflow", "show", "nightly_cleanup").returncode == 3


def test_a_folder_with_an_invalid_system_definition_keeps_the_server_from_starting(tmp_path: Path) -> None:
    (tmp_path / "bad.yaml").write_text("family_slug: bad\nsteps: []\n")
    server = Server(tmp_path / "data", {"DUCTOR_WORKFLOWS_DIR": str(tmp_path)})
    with pytest.raises(AssertionError, match="GRAPH_EMPTY"):
        server.start()
