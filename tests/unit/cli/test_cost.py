"""`ductor runs cost` as a shell sees it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.unit.cli.server import Server
from typer.testing import CliRunner

from ductor.cli import cost
from ductor.cli.main import app

RUNNER = CliRunner()
KEYS = {"DUCTOR_API_KEY": "dk_1", "DUCTOR_TENANT_ID": "t-1", "DUCTOR_API_URL": "http://127.0.0.1:9"}


def lines(writes: float, requests: float) -> dict[str, Any]:
    shown = [
        {"service": "DynamoDB", "unit": "write request units", "quantity": 54, "amount": writes},
        {"service": "SQS", "unit": "FIFO requests", "quantity": 4, "amount": requests},
    ]
    return {"amount": writes + requests, "lines": shown}


FOUND: dict[str, Any] = {
    "run_id": "r",
    "currency": "USD",
    "region": "us-east-1",
    "prices_as_of": "2026-09-28",
    "final": True,
    "at_load": lines(0.00003375, 0.000002),
    "alone": lines(0.00003375, 0.000018),
    "runs_below": 2,
    "below_at_load": 0.0001,
    "below_alone": 0.0002,
    "truncated": False,
    "models": [
        {
            "provider": "bedrock",
            "model": "claude",
            "calls": 2,
            "input_tokens": 1_200,
            "output_tokens": 80,
            "amount": 0.0048,
        },
        {"provider": "openai", "model": "m", "calls": 1, "input_tokens": 10, "output_tokens": 5, "amount": None},
    ],
    "models_below": [],
    "models_truncated": False,
    "counted": {"commits": 11},
    "not_included": ["the services that actions call"],
}


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Server:
    made = Server({"GET /api/workflows/runs/r/cost": [(200, {"data": FOUND})]})
    monkeypatch.setattr(cost, "Client", lambda _access: made.client())
    return made


def test_each_line_is_shown_at_load_and_alone(server: Server) -> None:
    shown = RUNNER.invoke(app, ["runs", "cost", "r"], env=KEYS).stdout
    assert len(server.requests) == 1
    rows = [line.split() for line in shown.splitlines()]
    assert ["SQS", "FIFO", "requests", "2.00", "18.00"] in rows
    assert ["together", "35.75", "51.75"] in rows
    assert "besides, 2 runs that it led to: 100.00 at load, 200.00 alone" in shown
    assert "the services that actions call" in shown


def test_models_have_their_tokens_and_an_amount_where_a_price_is_set(server: Server) -> None:
    shown = RUNNER.invoke(app, ["runs", "cost", "r"], env=KEYS).stdout
    assert server.requests
    rows = [line.split() for line in shown.splitlines()]
    assert ["bedrock/claude", "2", "1,200", "80", "0.004800"] in rows
    assert ["openai/m", "1", "10", "5", "no", "price", "set"] in rows


def test_the_cost_as_json(server: Server) -> None:
    result = RUNNER.invoke(app, ["runs", "cost", "r", "--format", "json"], env=KEYS)
    assert server.requests
    assert json.loads(result.stdout) == FOUND
