"""`ductor runs cost`: what a run costs on AWS, estimated from what it counted. Changes nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import typer
from rich.table import Table
from rich.text import Text

from ductor.cli import screen
from ductor.cli.access import find
from ductor.cli.client import Client
from ductor.cli.options import Format


def show(run_id: str, *, shown: Format, data: Path) -> None:
    """Print the estimate, line by line, per million runs like this one."""
    with Client(find(data)) as client:
        cost = client.cost(run_id)
    if shown is Format.JSON:
        typer.echo(json.dumps(cost))
        return
    console = screen.console()
    currency = str(cost["currency"])
    state = "" if cost["final"] else " so far"
    console.print(Text(f"run {run_id}{state}: a million like it cost, in {currency}"))
    console.print(_table(cost))
    if cost["runs_below"]:
        below = f"{cost['runs_below']}{'+' if cost['truncated'] else ''} runs that it led to"
        low, high = _million(cost["below_at_load"]), _million(cost["below_alone"])
        console.print(Text(f"besides, {below}: {low} at load, {high} alone"))
    for name, whose in (("models", "its AI steps"), ("models_below", "AI steps of the runs that it led to")):
        if cost.get(name):
            more = " or more" if cost.get("models_truncated") else ""
            console.print(Text(f"\nasked of models by {whose}{more}; this run alone, in {currency}"))
            console.print(_models(cost[name]))
    console.print(Text(f"list prices of {cost['region']}, {cost['prices_as_of']}. Not included:", style="dim"))
    for item in cost["not_included"]:
        console.print(Text(f"  {item}", style="dim"))


def _table(cost: dict[str, Any]) -> Table:
    """A line per unit: at load beside alone."""
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    table.add_column("SERVICE", no_wrap=True)
    table.add_column("UNIT", no_wrap=True)
    for name in ("AT LOAD", "ALONE"):
        table.add_column(name, no_wrap=True, justify="right")
    at_load, alone = (
        {(one["service"], one["unit"]): one for one in cost[name]["lines"]} for name in ("at_load", "alone")
    )
    for key, one in alone.items():
        low = at_load.get(key, {}).get("amount", 0)
        table.add_row(*map(Text, (*key, _million(low), _million(one["amount"]))))
    table.add_row(
        Text("together", style="bold"),
        "",
        *(Text(_million(cost[name]["amount"]), style="bold") for name in ("at_load", "alone")),
    )
    return table


def _models(lines: list[dict[str, Any]]) -> Table:
    """A line per model: calls, tokens, and the amount where the price list of the server has one."""
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    table.add_column("MODEL", overflow="fold")
    for name in ("CALLS", "INPUT TOKENS", "OUTPUT TOKENS", "AMOUNT"):
        table.add_column(name, no_wrap=True, justify="right")
    for one in lines:
        amount = "no price set" if one["amount"] is None else f"{one['amount']:,.6f}"
        counts = (f"{one[name]:,}" for name in ("calls", "input_tokens", "output_tokens"))
        table.add_row(*map(Text, (f"{one['provider']}/{one['model']}", *counts, amount)))
    return table


def _million(amount: float) -> str:
    return f"{amount * 1_000_000:,.2f}"
