"""What the functions import: a cold start pays for it. Each is looked at in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.functions.world import AwsWorld

ROOT = Path(__file__).parents[2]
FUNCTIONS = sorted(path.parent.name for path in (ROOT / "functions").glob("*/handler.py"))
LIMIT_MS = 400
"""For the coordinator, as processor time. What else runs slows memory down, so the best of some tries counts."""

TRIES = 8

HEAVY = {"boto3", "celpy", "croniter", "httpx", "jsonschema", "pydantic", "sqlite3", "typer", "uvicorn", "yaml"}
REPORT = """
import importlib, json, sys, time
begin = time.process_time()
importlib.import_module(sys.argv[1])
print(json.dumps({"ms": (time.process_time() - begin) * 1000, "modules": sorted(sys.modules)}))
"""


def imported(function: str, world: AwsWorld) -> dict[str, Any]:
    """How long the handler's module took, and all modules of its process."""
    environment = {**os.environ, **world.environment, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", REPORT, f"functions.{function}.handler"]
    done = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("function", FUNCTIONS)
def test_every_function_can_be_imported_with_what_the_template_sets(world: AwsWorld, function: str) -> None:
    assert f"functions.{function}.handler" in imported(function, world)["modules"]


def test_the_coordinator_imports_nothing_heavy(world: AwsWorld) -> None:
    modules = imported("coordinator", world)["modules"]
    assert {name for name in modules if name.partition(".")[0] in HEAVY} == set()
    assert not [name for name in modules if name.startswith("aws_lambda_powertools.event_handler")]
    assert not [name for name in modules if name.startswith(("ductor.api", "ductor.validation", "ductor.actions"))]


def test_the_api_imports_what_applies_schemas_when_it_meets_one(world: AwsWorld) -> None:
    assert not [name for name in imported("api", world)["modules"] if name.partition(".")[0] == "jsonschema"]


def test_the_coordinator_is_imported_in_time(world: AwsWorld) -> None:
    took: list[float] = []
    while not took or (min(took) > LIMIT_MS and len(took) < TRIES):
        took.append(imported("coordinator", world)["ms"])
    assert min(took) <= LIMIT_MS, took


def test_a_missing_variable_is_named(world: AwsWorld) -> None:
    from ductor.bootstrap.aws_parts import AwsSettings, SettingsError

    with pytest.raises(SettingsError, match="DUCTOR_TABLE"):
        AwsSettings({}).need("DUCTOR_TABLE")
