"""The layer that was deployed holds all that the functions import, nothing of this machine, and is small enough."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.deployed.emulator import ROOT, RUNTIME
from tests.deployed.stack import Stack

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(400)]

FUNCTIONS = sorted(path.parent.name for path in (ROOT / "functions").glob("*/handler.py"))
LIMIT_MB, ROOM_MB = 250, 50
IMPORT = "import handler, sys; sys.exit(0 if callable(handler.handler) else 'no handler')"


def configuration(stack: Stack, function: str) -> dict[str, Any]:
    """What Lambda knows of the function whose code is in the folder of that name."""
    functions = stack.aws.client("lambda")
    wanted = f"-{function.capitalize()}Function-"
    (found,) = [one for one in functions.list_functions()["Functions"] if wanted in one["FunctionName"]]
    answer: dict[str, Any] = functions.get_function_configuration(FunctionName=found["FunctionName"])
    return answer


@pytest.fixture(scope="module")
def layer(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The layer of the coordinator, unpacked."""
    arn = configuration(stack, "sweeper")["Layers"][0]["Arn"]
    place = stack.aws.client("lambda").get_layer_version_by_arn(Arn=arn)["Content"]["Location"]
    folder = tmp_path_factory.mktemp("layer")
    packed = folder / "layer.zip"
    packed.write_bytes(httpx.get(place, timeout=60).raise_for_status().content)
    with zipfile.ZipFile(packed) as archive:
        archive.extractall(folder)
    packed.unlink()
    return folder


def test_the_layer_is_below_the_limit_of_lambda_with_room(layer: Path, capsys: pytest.CaptureFixture[str]) -> None:
    size = sum(file.stat().st_size for file in layer.rglob("*") if file.is_file()) / 1_000_000
    with capsys.disabled():
        sys.stderr.write(f"\nlayer: {size:.0f} MB unpacked of {LIMIT_MB} MB, for {RUNTIME}\n")
    assert size < LIMIT_MB - ROOM_MB


@pytest.mark.parametrize("function", FUNCTIONS)
def test_the_layer_alone_imports_the_handler(stack: Stack, layer: Path, function: str) -> None:
    """An interpreter without site-packages: what the layer lacks is missing, whatever is installed here."""
    variables = configuration(stack, function)["Environment"]["Variables"]
    path = os.pathsep.join([str(ROOT / "functions" / function), str(layer / "python")])
    environment = {**stack.aws.credentials, **variables, "DUCTOR_ACTIONS": "", "PYTHONPATH": path}
    command = [sys.executable, "-S", "-B", "-c", IMPORT]
    done = subprocess.run(command, env=environment, cwd=layer, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
