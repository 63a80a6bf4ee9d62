"""A real `ductor serve` in a process of its own, which a test may kill."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import httpx

READY_S = 30.0


class Server:
    """One data folder and one port; started, killed and started again at will."""

    def __init__(self, data: Path, environment: dict[str, str]) -> None:
        self.data = data
        self.port = _free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._environment = {**os.environ, **environment, "PYTHONPATH": os.pathsep.join(sys.path)}
        self._process: subprocess.Popen[bytes] | None = None
        self.log = data.parent / "serve.log"

    def start(self) -> None:
        """Start and wait until it answers."""
        command = [sys.executable, "-c", "from ductor.cli.main import app; app()", "serve"]
        command += ["--data", str(self.data), "--port", str(self.port)]
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(command, env=self._environment, stdout=log, stderr=log)
        deadline = time.monotonic() + READY_S
        while time.monotonic() < deadline:
            try:
                if httpx.get(f"{self.url}/healthz", timeout=1).status_code == 200:
                    return
            except httpx.TransportError:
                time.sleep(0.02)
            assert self._process.poll() is None, f"the server ended: {self.log.read_text()}"
        raise AssertionError(f"the server was not ready after {READY_S} s: {self.log.read_text()}")

    def kill(self) -> None:
        """kill -9."""
        assert self._process is not None
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()

    def stop(self) -> None:
        """A clean stop, if it runs."""
        if self._process is not None and self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(30)
            except subprocess.TimeoutExpired:
                self.kill()

    def memory_mb(self) -> float:
        """Resident memory in megabytes."""
        assert self._process is not None
        status = Path(f"/proc/{self._process.pid}/status").read_text()
        line = next(line for line in status.splitlines() if line.startswith("VmRSS:"))
        return int(line.split()[1]) / 1024

    def client(self) -> httpx.Client:
        """A client with the first key."""
        lines = (self.data / "env").read_text().splitlines()
        values = dict(line.removeprefix("export ").split("=", 1) for line in lines)
        headers = {"Authorization": f"Bearer {values['DUCTOR_API_KEY']}", "X-Tenant-ID": values["DUCTOR_TENANT_ID"]}
        return httpx.Client(base_url=self.url, headers=headers, timeout=30)


def publish(client: httpx.Client, document: dict[str, Any]) -> str:
    """The id of a published version of `document`."""
    created = client.post("/api/workflow-definitions", json=document)
    assert created.status_code == 201, created.text
    published = client.post(f"/api/workflow-definitions/{created.json()['data']['id']}/publish", json={})
    assert published.status_code == 200, published.text
    return str(published.json()["published"]["id"])


def status(client: httpx.Client, run_id: str) -> str:
    """The status of a run."""
    return str(client.get(f"/api/workflows/runs/{run_id}").json()["data"]["summary"]["status"])


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
