"""Workers as `docs/workers.md` has them, as processes of their own beside a real server, with signals and kills."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml
from tests.e2e.server import Server, publish, status

pytestmark = pytest.mark.e2e

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "workers.md"
DEADLINE_S = 40.0
SLOW = """
import sys
from ductor.client import Task, Worker

worker = Worker(lease_seconds=2, grace_seconds=float(sys.argv[1]), poll_seconds=2)


@worker.task("slow")
def slow(task: Task) -> dict:
    for step in range(task.input["steps"]):
        task.heartbeat({"step": step})
        task.wait(0.1)
    return {"delivery": task.delivery, "before": task.last_heartbeat is not None}


worker.run()
"""
LANGUAGES = ["python", *(["bash"] if all(map(shutil.which, ("bash", "curl", "jq"))) else [])]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = Server(tmp_path_factory.mktemp("worker") / "data", {})
    server.start()
    yield server
    server.stop()


@pytest.fixture
def client(server: Server) -> Iterator[httpx.Client]:
    with server.client() as client:
        yield client


@pytest.fixture
def started(server: Server, tmp_path: Path) -> Iterator[Callable[..., subprocess.Popen[bytes]]]:
    """Starts workers; those that still run are killed at the end."""
    running: list[subprocess.Popen[bytes]] = []
    lines = (server.data / "env").read_text().splitlines()
    environment = dict(line.removeprefix("export ").split("=", 1) for line in lines)

    def start(*command: str) -> subprocess.Popen[bytes]:
        with (tmp_path / "worker.log").open("ab") as log:
            process = subprocess.Popen(
                command,
                cwd=tmp_path,
                env={**os.environ, **environment, "PYTHONPATH": os.pathsep.join(sys.path)},
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        running.append(process)
        return process

    yield start
    for process in running:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def sample(language: str) -> str:
    """The program in the page."""
    found = re.search(rf"^```{language}\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    assert found is not None
    return found[1]


def until(holds: Callable[[], bool], why: Callable[[], str] = str) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not holds():
        assert time.monotonic() < deadline, why()
        time.sleep(0.02)


def triggered(client: httpx.Client, definition: str, value: Any) -> str:
    answer = client.post(f"/api/v2/workflow-definitions/{definition}:trigger", json={"input": value})
    assert answer.status_code == 202, answer.text
    return str(answer.json()["run_id"])


def slow_run(client: httpx.Client, steps: int) -> str:
    document = {
        "environment": "default",
        "family_slug": f"slow_{time.monotonic_ns()}",
        "steps": [
            {"ref": "b", "type": "bridge", "args": {"task_type": "slow", "input": "${{ TRIGGER.payload }}"}},
        ],
    }
    return triggered(client, publish(client, document), {"steps": steps})


def output(client: httpx.Client, run_id: str, node: str) -> Any:
    return client.get(f"/api/v2/workflow-runs/{run_id}/nodes/{node}/output").json()["output"]


def attempt(client: httpx.Client, run_id: str) -> Any:
    return (client.get(f"/api/v2/workflow-runs/{run_id}/attempts").json()["items"] or [{}])[-1]


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_worker_of_the_page_does_the_example(
    client: httpx.Client, started: Callable[..., subprocess.Popen[bytes]], tmp_path: Path, language: str
) -> None:
    example = yaml.safe_load((ROOT / "events" / "thumbnail_by_worker.yaml").read_text())["definition"]
    definition = publish(client, {**example, "family_slug": f"thumbnail_{language}"})
    good = triggered(client, definition, {"image": "cat.png", "width": 20})
    bad = triggered(client, definition, {"image": "cat.txt", "width": 20})
    if language == "python":
        (tmp_path / "jobs.py").write_text(sample("python"))
        worker = started(sys.executable, "-c", "from ductor.cli.main import app; app()", "worker", "jobs:worker")
    else:
        (tmp_path / "worker.sh").write_text(sample("bash"))
        worker = started("bash", "worker.sh")
    log = tmp_path / "worker.log"
    until(lambda: status(client, good) == "completed" and status(client, bad) == "failed", log.read_text)
    by = {"python": "python", "bash": "shell"}[language]
    assert output(client, good, "render") == {"image": "cat.png", "width": 20, "by": by}
    assert attempt(client, bad)["error"]["code"] == "IMAGE_UNREADABLE"
    worker.terminate()
    assert worker.wait(DEADLINE_S) == 0, log.read_text()


def test_a_worker_that_is_asked_to_stop_finishes_what_it_has(
    client: httpx.Client, started: Callable[..., subprocess.Popen[bytes]], tmp_path: Path
) -> None:
    run_id = slow_run(client, 10)
    worker = started(sys.executable, "-c", SLOW, "30")
    until(lambda: attempt(client, run_id).get("status") == "running", (tmp_path / "worker.log").read_text)
    worker.send_signal(signal.SIGTERM)
    assert worker.wait(DEADLINE_S) == 0
    until(lambda: status(client, run_id) == "completed")
    assert output(client, run_id, "b") == {"delivery": 1, "before": False}


def test_a_worker_without_time_gives_back_what_it_has(
    client: httpx.Client, started: Callable[..., subprocess.Popen[bytes]], tmp_path: Path
) -> None:
    run_id = slow_run(client, 20)
    worker = started(sys.executable, "-c", SLOW, "0.2")
    until(lambda: attempt(client, run_id).get("heartbeat_details") is not None, (tmp_path / "worker.log").read_text)
    worker.send_signal(signal.SIGTERM)
    assert worker.wait(DEADLINE_S) == 0
    assert attempt(client, run_id)["status"] == "running"
    started(sys.executable, "-c", SLOW, "5")
    until(lambda: status(client, run_id) == "completed", (tmp_path / "worker.log").read_text)
    assert output(client, run_id, "b") == {"delivery": 2, "before": True}
    assert attempt(client, run_id)["attempt"] == 1


def test_kill_9_of_worker_and_server(
    server: Server, client: httpx.Client, started: Callable[..., subprocess.Popen[bytes]], tmp_path: Path
) -> None:
    run_id = slow_run(client, 30)
    worker = started(sys.executable, "-c", SLOW, "5")
    until(lambda: attempt(client, run_id).get("status") == "running", (tmp_path / "worker.log").read_text)
    worker.kill()
    second = started(sys.executable, "-c", SLOW, "5")
    until(lambda: attempt(client, run_id).get("deliveries") == 2, (tmp_path / "worker.log").read_text)
    server.kill()
    server.start()
    until(lambda: status(client, run_id) == "completed", (tmp_path / "worker.log").read_text)
    assert second.poll() is None


def test_a_cancelled_run_stops_its_worker(
    client: httpx.Client, started: Callable[..., subprocess.Popen[bytes]], tmp_path: Path
) -> None:
    run_id = slow_run(client, 10_000)
    started(sys.executable, "-c", SLOW, "5")
    until(lambda: attempt(client, run_id).get("status") == "running", (tmp_path / "worker.log").read_text)
    client.post(f"/api/v2/workflow-runs/{run_id}:cancel", json={"request_id": "c"})
    until(lambda: status(client, run_id) == "cancelled", (tmp_path / "worker.log").read_text)
    assert attempt(client, run_id)["status"] == "revoked"


def test_many_workers_share_the_tasks_and_none_is_done_twice(
    client: httpx.Client, started: Callable[..., subprocess.Popen[bytes]], tmp_path: Path
) -> None:
    runs = [slow_run(client, 0) for _ in range(12)]
    for _ in range(3):
        started(sys.executable, "-c", SLOW, "5")
    until(lambda: all(status(client, run_id) == "completed" for run_id in runs), (tmp_path / "worker.log").read_text)
    assert all(attempt(client, run_id)["deliveries"] == 1 for run_id in runs)


def test_a_wrong_key_ends_the_worker_with_a_sentence(
    server: Server, started: Callable[..., subprocess.Popen[bytes]], tmp_path: Path
) -> None:
    (tmp_path / "jobs.py").write_text(
        "from ductor.client import Access, Worker\n"
        f"worker = Worker(Access({server.url!r}, 'dk_wrong_key', 'nobody'))\n"
        "worker.task('x')(lambda task: None)\n"
    )
    worker = started(sys.executable, "-c", "from ductor.cli.main import app; app()", "worker", "jobs:worker")
    assert worker.wait(DEADLINE_S) == 3
    assert "the server refuses this worker: KEY_INVALID" in (tmp_path / "worker.log").read_text()
