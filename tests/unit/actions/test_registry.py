"""How actions get their names, and which are refused."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from ductor.actions import registry as registry_module
from ductor.actions.action import define
from ductor.actions.context import ActionContext
from ductor.actions.errors import ActionLoadError
from ductor.actions.registry import ActionRegistry, action, default_registry
from ductor.steps.spec import Catalog


class ChargeArgs(BaseModel):
    amount: int


def charge(args: ChargeArgs, ctx: ActionContext) -> dict[str, Any]:
    """Charges a customer.

    Once per idempotency key.
    """
    return {"amount": args.amount, "key": ctx.idempotency_key}


def refund(args: dict[str, Any], ctx: ActionContext) -> dict[str, Any]:
    return {**args, "node": ctx.node}


@pytest.fixture(autouse=True)
def _nothing_declared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry_module, "_declared", {})


@pytest.fixture
def module_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    before = set(sys.modules)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path
    for name in set(sys.modules) - before:
        if name.startswith("team_"):
            del sys.modules[name]


MODULE = """
from ductor.actions.registry import action

@action("{name}", blocking=False, timeout_ms=5000)
def run(args: dict, ctx) -> dict:
    return args
"""


def test_a_declared_function_keeps_its_options_and_stays_callable() -> None:
    declared = action("billing.charge", timeout_ms=60_000, per_attempt_key=True)(charge)
    found = default_registry().get("billing.charge")

    assert declared is charge
    assert found is not None
    assert (found.timeout_ms, found.per_attempt_key, found.blocking) == (60_000, True, True)
    assert found.args_model is ChargeArgs
    assert found.description == "Charges a customer."


def test_a_dict_annotation_means_any_args() -> None:
    assert define("billing.refund", refund).args_model is None


def test_the_built_in_actions_are_there() -> None:
    registry = default_registry()

    assert {"core.echo", "core.fail", "core.sleep", "http.request"} <= set(registry.names())
    assert "core.echo" in registry
    assert "core.nothing" not in registry
    assert registry.get("core.nothing") is None


def test_the_registry_is_the_catalog_that_validation_asks() -> None:
    catalog: Catalog = ActionRegistry([define("billing.charge", charge)])

    assert "billing.charge" in catalog
    assert catalog.nearest("biling.charge") == "billing.charge"
    assert catalog.nearest("zzz") is None
    assert catalog.needs_connection("billing.charge") is False


def test_a_named_module_is_imported(module_dir: Path) -> None:
    (module_dir / "team_one.py").write_text(MODULE.format(name="team.run"))

    found = default_registry(["team_one"]).get("team.run")

    assert found is not None
    assert (found.blocking, found.timeout_ms) == (False, 5_000)


def test_a_second_registry_has_the_actions_of_modules_imported_before(module_dir: Path) -> None:
    (module_dir / "team_two.py").write_text(MODULE.format(name="team.two"))
    default_registry(["team_two"])

    assert "team.two" in default_registry(["team_two"])


def test_entry_points_are_loaded(module_dir: Path) -> None:
    (module_dir / "team_pack.py").write_text(MODULE.format(name="pack.run"))
    info = module_dir / "team_pack-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: team-pack\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[ductor.actions]\npack = team_pack\n")
    assert metadata.entry_points(group="ductor.actions").names == {"pack"}

    assert "pack.run" in default_registry()


@pytest.mark.parametrize("source", ["import no_such_module_here", "raise RuntimeError('broken')", "def ("])
def test_a_module_that_cannot_be_imported_is_named(module_dir: Path, source: str) -> None:
    (module_dir / "team_broken.py").write_text(source)

    with pytest.raises(ActionLoadError, match="module 'team_broken' cannot be loaded"):
        default_registry(["team_broken"])


def test_a_name_taken_twice_is_refused_naming_both(module_dir: Path) -> None:
    for name in ("team_a", "team_b"):
        (module_dir / f"{name}.py").write_text(MODULE.format(name="team.same"))

    with pytest.raises(ActionLoadError, match=r"'team.same': team_a\.run and team_b\.run"):
        default_registry(["team_a", "team_b"])


def test_a_built_in_name_cannot_be_taken() -> None:
    action("core.echo")(refund)

    with pytest.raises(ActionLoadError, match=r"core\.echo"):
        default_registry()


def test_declaring_a_function_again_replaces_it() -> None:
    action("billing.charge", timeout_ms=1)(charge)
    action("billing.charge", timeout_ms=2)(charge)

    found = default_registry().get("billing.charge")

    assert found is not None
    assert found.timeout_ms == 2


@pytest.mark.parametrize("name", ["", ".x", "x.", "a b", "ünder", "1st", "a" * 129])
def test_an_unusable_name_is_refused(name: str) -> None:
    with pytest.raises(ActionLoadError, match="no action name"):
        define(name, refund)


def one_argument(args: dict[str, Any]) -> dict[str, Any]:
    return args


def three_arguments(args: dict[str, Any], ctx: ActionContext, more: int) -> dict[str, Any]:
    return {**args, "more": more, "node": ctx.node}


async def asynchronous(args: dict[str, Any], ctx: ActionContext) -> dict[str, Any]:
    return {**args, "node": ctx.node}


def badly_annotated(args: int, ctx: ActionContext) -> dict[str, Any]:
    return {"args": args, "node": ctx.node}


def unresolvable(args: Missing, ctx: ActionContext) -> dict[str, Any]:  # type: ignore[name-defined]  # noqa: F821
    return {"args": args, "node": ctx.node}


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (one_argument, "two arguments"),
        (three_arguments, "two arguments"),
        (asynchronous, "async"),
        (badly_annotated, "pydantic model or dict"),
        (unresolvable, "cannot be resolved"),
    ],
)
def test_a_function_that_no_worker_could_call_is_refused(function: Any, reason: str) -> None:
    with pytest.raises(ActionLoadError, match=reason):
        define("team.run", function)


def test_a_negative_timeout_is_refused() -> None:
    with pytest.raises(ActionLoadError, match="timeout_ms"):
        define("team.run", refund, timeout_ms=-1)
