"""Starts MiniStack with what it takes differently from AWS put right. Runs in the emulator's own virtual environment.

It looks at schedules every 10 s, takes every schedule to be of the default group when it checks a permission, asks for
permissions of SQS's batch operations and of Bedrock's conversations that IAM does not know, and compares a mapping's
concurrency as text when it comes from a parameter of the template. And it unpacks all layers for each process of a
function, which takes longer than everything else that a cold start does.
"""

from __future__ import annotations

import hashlib
import json
import os
import signal
import tempfile
import threading
import time
import types
import zipfile
from pathlib import Path
from typing import Any

from ministack.core import iam_actions, lambda_runtime  # type: ignore[import-not-found]
from ministack.services import eventbridge, lambda_svc, scheduler, sqs  # type: ignore[import-not-found]

ACTIONS = {
    "bedrock:Converse": "bedrock:InvokeModel",
    "sqs:SendMessageBatch": "sqs:SendMessage",
    "sqs:DeleteMessageBatch": "sqs:DeleteMessage",
    "sqs:ChangeMessageVisibilityBatch": "sqs:ChangeMessageVisibility",
}
ask = iam_actions.extract_iam_action
name = iam_actions.extract_resource_arn
limit = lambda_svc._sqs_esm_concurrency


def action(*request: Any, **more: Any) -> str | None:
    asked: str | None = ask(*request, **more)
    return ACTIONS.get(asked, asked) if asked else asked


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


class UnpackedOnce(zipfile.ZipFile):
    """Unpacks each archive once; what it is asked for then are links to that."""

    _turn = threading.Lock()

    def extractall(self, path: Any = None, members: Any = None, pwd: Any = None) -> None:
        entries = json.dumps([(entry.filename, entry.CRC) for entry in self.infolist()])
        kept = Path(tempfile.gettempdir()) / "unpacked" / hashlib.sha256(entries.encode()).hexdigest()
        with self._turn:
            if not kept.exists():
                half = kept.with_suffix(".half")
                super().extractall(half, members, pwd)
                half.rename(kept)
        for entry in kept.iterdir():
            (Path(path) / entry.name).symlink_to(entry)


def clock_of(file: Path) -> Any:
    """A module `time` for which it is what the file says, and a little later whenever somebody looks."""
    seen = {"written": 0, "ms": 0, "looks": 0}

    def now() -> float:
        written, ms = file.stat().st_mtime_ns, int(file.read_text())
        # Another test begins earlier than this one ended, or at the same time.
        again = written != seen["written"] and ms <= seen["ms"]
        seen.update(written=written, ms=ms, looks=0 if again else seen["looks"] + 1)
        return (ms + seen["looks"] * 1e-3) / 1000

    return types.SimpleNamespace(**{**vars(time), "time": now})


if "CLOCK_FILE" in os.environ:
    sqs.time = clock_of(Path(os.environ["CLOCK_FILE"]))
lambda_runtime.zipfile = types.SimpleNamespace(**{**vars(zipfile), "ZipFile": UnpackedOnce})
iam_actions.extract_iam_action = action
iam_actions.extract_resource_arn = resource
lambda_svc._sqs_esm_concurrency = concurrency
scheduler._SCHEDULE_TICK_INTERVAL = 1
eventbridge._SCHEDULER_TICK_INTERVAL = 1


def end_with(parent: int) -> None:
    """A test run that is killed stops nothing; so the emulator ends, with its functions, when it is left alone."""
    while os.getppid() == parent:
        time.sleep(1)
    os.killpg(0, signal.SIGKILL)


if __name__ == "__main__":
    threading.Thread(target=end_with, args=(os.getppid(),), daemon=True).start()
    from ministack.app import main  # type: ignore[import-not-found]

    main()
