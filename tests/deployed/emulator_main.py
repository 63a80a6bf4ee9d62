"""Starts MiniStack with what it takes differently from AWS put right. Runs in the emulator's own virtual environment.

It looks at schedules every 10 s, takes every schedule to be of the default group when it checks a permission, asks for
permissions of SQS's batch operations that IAM does not know, and compares a mapping's concurrency as text when it comes
from a parameter of the template.
"""

from __future__ import annotations

import json
from typing import Any

from ministack.core import iam_actions  # type: ignore[import-not-found]
from ministack.services import eventbridge, lambda_svc, scheduler  # type: ignore[import-not-found]

BATCHES = {
    "sqs:SendMessageBatch": "sqs:SendMessage",
    "sqs:DeleteMessageBatch": "sqs:DeleteMessage",
    "sqs:ChangeMessageVisibilityBatch": "sqs:ChangeMessageVisibility",
}
ask = iam_actions.extract_iam_action
name = iam_actions.extract_resource_arn
limit = lambda_svc._sqs_esm_concurrency


def action(*request: Any, **more: Any) -> str | None:
    asked: str | None = ask(*request, **more)
    return BATCHES.get(asked, asked) if asked else asked


def resource(service: str, method: str, path: str, headers: Any, body: bytes, *rest: Any, **more: Any) -> Any:
    found = name(service, method, path, headers, body, *rest, **more)
    if service == "scheduler" and isinstance(found, str):
        query = rest[0].get("groupName", "default") if rest else "default"
        group = json.loads(body).get("GroupName", "default") if body else query[0] if isinstance(query, list) else query
        return found.replace(":schedule/default/", f":schedule/{group}/")
    return found


def concurrency(mapping: dict[str, Any], *rest: Any) -> Any:
    scaling = mapping.get("ScalingConfig") or {}
    if "MaximumConcurrency" in scaling:
        scaling["MaximumConcurrency"] = int(scaling["MaximumConcurrency"])
    return limit(mapping, *rest)


iam_actions.extract_iam_action = action
iam_actions.extract_resource_arn = resource
lambda_svc._sqs_esm_concurrency = concurrency
scheduler._SCHEDULE_TICK_INTERVAL = 1
eventbridge._SCHEDULER_TICK_INTERVAL = 1

if __name__ == "__main__":
    from ministack.app import main  # type: ignore[import-not-found]

    main()
