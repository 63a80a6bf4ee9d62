"""A small shop whose runs fill the console: orders in every state, with what people would really see in them."""

from __future__ import annotations

import time
from typing import Any, Final

import httpx

ORDER: Final[dict[str, Any]] = {
    "family_slug": "order_fulfilment",
    "title": "Fulfil an order",
    "description": "Checks, charges, packs and ships an order; large ones are looked at first.",
    "environment": "default",
    "tags": ["orders", "payments"],
    "steps": [
        {
            "ref": "check",
            "type": "action",
            "title": "Check the order",
            "action": "core.echo",
            "redaction_policy": "none",
            "args": {"order": "${{ TRIGGER.payload.order }}", "ok": True},
        },
        {
            "ref": "reserve",
            "type": "action",
            "title": "Reserve the items",
            "action": "core.sleep",
            "redaction_policy": "none",
            "args": {"duration": "400ms"},
        },
        {
            "ref": "large",
            "type": "condition",
            "title": "Over 1,000?",
            "redaction_policy": "none",
            "args": {"expr": "TRIGGER.payload.amount > 1000"},
        },
        {
            "ref": "review",
            "type": "approval",
            "action": "approval",
            "title": "Somebody looks at it",
            "redaction_policy": "none",
            "args": {"audience": {"roles": ["operator"]}, "timeout_ms": 86400000},
        },
        {
            "ref": "charge",
            "type": "action",
            "title": "Charge the card",
            "action": "core.fail",
            "redaction_policy": "none",
            "args": {
                "code": "CARD_DECLINED",
                "message": "the bank declined the charge: insufficient funds",
                "fail_first_n": "${{ TRIGGER.payload.declines }}",
            },
            "retry_max_attempts": 3,
            "retry_backoff_ms": 300,
        },
        {
            "ref": "parcels",
            "type": "scatter",
            "title": "One parcel per item",
            "redaction_policy": "none",
            "args": {"items_expr": "TRIGGER.payload.items", "max_concurrency": 10},
        },
        {
            "ref": "pack",
            "type": "action",
            "title": "Pack",
            "action": "core.echo",
            "redaction_policy": "none",
            "args": {"sku": "${{ ITEM.sku }}", "weight_g": "${{ ITEM.weight_g }}"},
        },
        {
            "ref": "packed",
            "type": "gather",
            "title": "All packed",
            "redaction_policy": "none",
            "args": {"policy": "all"},
        },
        {
            "ref": "delivered",
            "type": "wait_event",
            "title": "The parcel has arrived",
            "redaction_policy": "none",
            "args": {
                "event_name": "parcel.delivered",
                "correlation_key": "${{ TRIGGER.payload.order }}",
                "timeout_ms": 1209600000,
            },
        },
        {
            "ref": "refuse",
            "type": "action",
            "title": "Tell the customer no",
            "action": "core.echo",
            "redaction_policy": "none",
            "args": {"text": "we cannot take this order"},
        },
        {
            "ref": "receipt",
            "type": "dataflow",
            "title": "Write the receipt",
            "redaction_policy": "none",
            "args": {
                "operation": "project",
                "project": {"order": "TRIGGER.payload.order", "parcels": "STEPS.packed.output.count"},
            },
        },
    ],
    "edges": [
        {"source_ref": "check", "target_ref": "reserve"},
        {"source_ref": "check", "target_ref": "large"},
        {"source_ref": "large", "target_ref": "review", "type": "true"},
        {"source_ref": "large", "target_ref": "charge", "type": "false"},
        {"source_ref": "review", "target_ref": "charge", "type": "approved"},
        {"source_ref": "review", "target_ref": "refuse", "type": "rejected"},
        {"source_ref": "charge", "target_ref": "parcels"},
        {"source_ref": "parcels", "target_ref": "pack"},
        {"source_ref": "pack", "target_ref": "packed"},
        {"source_ref": "packed", "target_ref": "delivered"},
        {"source_ref": "reserve", "target_ref": "delivered"},
        {"source_ref": "delivered", "target_ref": "receipt"},
    ],
}

ONBOARDING: Final[dict[str, Any]] = {
    "family_slug": "user_onboarding",
    "title": "Welcome a new user",
    "environment": "default",
    "steps": [
        {
            "ref": "greet",
            "type": "action",
            "title": "Say hello",
            "action": "core.echo",
            "redaction_policy": "none",
            "args": {"text": "Welcome, ${{ TRIGGER.payload.name }}"},
        },
        {"ref": "settle", "type": "wait", "title": "A day to look around", "args": {"duration": "1d"}},
        {
            "ref": "ask",
            "type": "action",
            "title": "Ask how it went",
            "action": "core.echo",
            "args": {"text": "How is it going?"},
        },
    ],
    "edges": [{"source_ref": "greet", "target_ref": "settle"}, {"source_ref": "settle", "target_ref": "ask"}],
}

ITEMS: Final = [{"sku": f"SKU-{number:03}", "weight_g": 120 + number * 7} for number in range(1, 8)]


def order(number: int, *, amount: int = 240, declines: int = 0, items: Any = ITEMS) -> dict[str, Any]:
    """The body of a trigger for one order."""
    name = f"ord-{10_400 + number}"
    return {
        "input": {"order": name, "customer": "Ada Lovelace", "amount": amount, "declines": declines, "items": items},
        "subject_type": "order",
        "subject_id": name,
        "correlation_labels": [{"key": "customer", "id": f"cus_{number % 4 + 1}"}],
    }


def trigger(client: httpx.Client, definition_id: str, body: dict[str, Any]) -> str:
    """The id of a run that was started so."""
    answer = client.post(f"/api/v2/workflow-definitions/{definition_id}:trigger", json=body)
    assert answer.status_code == 202, answer.text
    return str(answer.json()["run_id"])


def wait_for(client: httpx.Client, run_id: str, *wanted: str, within_s: float = 20) -> None:
    """Return when the run is in one of these states."""
    deadline = time.monotonic() + within_s
    while True:
        seen = client.get(f"/api/workflows/runs/{run_id}").json()["data"]["summary"]["status"]
        if seen in wanted:
            return
        assert time.monotonic() < deadline, f"{run_id} is {seen}"
        time.sleep(0.05)


def control(client: httpx.Client, run_id: str, operation: str, **body: Any) -> None:
    """Send a control under an id of its own."""
    request = {"request_id": f"{operation}-{run_id}", **body}
    answer = client.post(f"/api/v2/workflow-runs/{run_id}:{operation}", json=request)
    assert answer.status_code == 202, answer.text


def deliver(client: httpx.Client, number: int) -> None:
    """Publish that the parcel of an order has arrived."""
    name = f"ord-{10_400 + number}"
    body = {"event_name": "parcel.delivered", "correlation_key": name, "event_id": name, "payload": {"at": "door"}}
    assert client.post("/api/v2/workflow-events:publish", json=body).status_code == 202


def open_shop(client: httpx.Client, orders: str, onboarding: str) -> dict[str, str]:
    """One run of each kind, by what it shows; all of them have settled when this returns."""
    runs = {
        "completed": trigger(client, orders, order(1)),
        "delivery": trigger(client, orders, order(2, declines=1)),
        "approval": trigger(client, orders, order(3, amount=4800)),
        "failed": trigger(client, orders, order(4, declines=9)),
        "cancelled": trigger(client, orders, order(5)),
        "paused": trigger(
            client, onboarding, {"input": {"name": "Grace"}, "subject_type": "user", "subject_id": "u-7"}
        ),
        "timer": trigger(
            client, onboarding, {"input": {"name": "Edsger"}, "subject_type": "user", "subject_id": "u-8"}
        ),
    }
    for name in ("completed", "delivery", "approval", "cancelled", "paused", "timer"):
        wait_for(client, runs[name], "waiting")
    wait_for(client, runs["failed"], "failed")
    deliver(client, 1)
    wait_for(client, runs["completed"], "completed")
    control(client, runs["cancelled"], "cancel", reason="the customer called")
    wait_for(client, runs["cancelled"], "cancelled")
    control(client, runs["paused"], "pause", reason="asked by support")
    wait_for(client, runs["paused"], "paused")
    return runs
