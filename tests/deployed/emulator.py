"""MiniStack in a process of its own: AWS's APIs on a free port of this machine, with IAM enforced."""

from __future__ import annotations

import os
import platform
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import boto3
import httpx
from botocore.config import Config

ROOT = Path(__file__).parents[2]
TOOLS = Path(os.environ.get("DUCTOR_TOOLS", ROOT / ".tools"))
REGION = "us-east-1"
RUNTIME = "python{}.{}".format(*sys.version_info)
ARCHITECTURE = "arm64" if platform.machine() in ("aarch64", "arm64") else "x86_64"
READY_S = 60.0


class MiniStack:
    """One emulator with nothing in it. Whatever it writes goes below `folder`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.log = folder / "ministack.log"
        self.clock_file = folder / "clock"
        self.port = _free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def credentials(self) -> dict[str, str]:
        """The root user's, and where AWS is: for the tools that deploy."""
        return {
            "AWS_ENDPOINT_URL": self.url,
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
            "AWS_DEFAULT_REGION": REGION,
            "AWS_REGION": REGION,
            "AWS_CONFIG_FILE": os.devnull,
            "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        }

    def start(self, *, clock: bool = False) -> None:
        """Start, and wait until it answers. Its functions inherit its environment, so it gets as good as none.

        With `clock` its queues live at the time (epoch ms) that `clock_file` says.
        """
        python = TOOLS / "emulator" / "bin" / "python"
        assert python.exists(), f"{python} is missing: make tools"
        for name in ("tmp", "state", "s3"):
            (self.folder / name).mkdir(parents=True)
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.folder),
            "TMPDIR": str(self.folder / "tmp"),
            "STATE_DIR": str(self.folder / "state"),
            "S3_DATA_DIR": str(self.folder / "s3"),
            "GATEWAY_PORT": str(self.port),
            "BIND_HOST": "127.0.0.1",
            "AUTH": "true",
            "IOT_MTLS_ENABLED": "0",
            "SFTP_ENABLED": "0",
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
            "AWS_DEFAULT_REGION": REGION,
        }
        if clock:
            environment["CLOCK_FILE"] = str(self.clock_file)
        main = Path(__file__).with_name("emulator_main.py")
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [str(python), str(main)],
                env=environment,
                cwd=self.folder,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        deadline = time.monotonic() + READY_S
        while time.monotonic() < deadline:
            assert self._process.poll() is None, f"the emulator ended: {self.log.read_text()[-2000:]}"
            try:
                httpx.get(f"{self.url}/_ministack/health", timeout=2)
            except httpx.TransportError:
                time.sleep(0.1)
            else:
                return
        raise AssertionError(f"the emulator was not ready after {READY_S} s: {self.log.read_text()[-2000:]}")

    def stop(self) -> None:
        """End it with its functions: the group of processes that it leads."""
        if self._process is None or self._process.poll() is not None:
            return
        group = self._process.pid
        os.killpg(group, signal.SIGTERM)
        try:
            self._process.wait(5)
        except subprocess.TimeoutExpired:
            os.killpg(group, signal.SIGKILL)
            self._process.wait()

    def client(self, service: str) -> Any:
        """A client of the root user. Each has a session of its own: making clients of one is not thread-safe."""
        return boto3.session.Session().client(
            service,
            endpoint_url=self.url,
            region_name=REGION,
            aws_access_key_id="test",
            aws_secret_access_key="test",
            config=Config(retries={"total_max_attempts": 3}),
        )


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
