"""A stack of the real template, built and deployed by the tools that a user takes, and what tests do with it."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
from tests.deployed.emulator import ARCHITECTURE, REGION, ROOT, RUNTIME, TOOLS, MiniStack

NAME = "ductor-test"
MODEL = "amazon.nova-lite-v1:0"
ORDERS = "orders"
"""The queue that workflows may send to."""

STEP_TIMEOUT = 10
STEP_VISIBILITY = 12
PATIENCE_S = 90.0
ENDED = {"completed", "failed", "cancelled", "terminated", "timed_out"}


class Stack:
    """One deployment, with its first tenant and key."""

    def __init__(self, aws: MiniStack, folder: Path) -> None:
        self.aws = aws
        self._folder = folder
        self.outputs: dict[str, str] = {}
        self.keys: dict[str, str] = {}

    def deploy(self) -> None:
        """`sam build`, `sam deploy`, `ductor admin bootstrap`."""
        build = self._folder / "build"
        chosen = [f"Runtime={RUNTIME}", f"Architecture={ARCHITECTURE}"]
        self._sam("build", "--build-dir", str(build), "--cache-dir", str(self._folder / "cache"))
        self._sam(
            *("deploy", "--template-file", str(build / "template.yaml"), "--stack-name", NAME, "--no-progressbar"),
            *("--config-file", str(ROOT / "samconfig.toml")),
            *("--s3-prefix", "test", "--parameter-overrides", *chosen),
            *(f"StepTimeout={STEP_TIMEOUT}", f"StepVisibility={STEP_VISIBILITY}", "ActionModules=deadly"),
            f"ActionsLayer={self._actions_layer()}",
            f"ActionPolicies={self._action_policy()}",
            f"BedrockModels=arn:aws:bedrock:{REGION}::foundation-model/{MODEL}",
        )
        answer = self.aws.client("cloudformation").describe_stacks(StackName=NAME)
        self.outputs = {one["OutputKey"]: one["OutputValue"] for one in answer["Stacks"][0]["Outputs"]}
        # The bucket takes encrypted connections only, and the emulator has none.
        self.aws.client("s3").delete_bucket_policy(Bucket=self.outputs["BucketName"])
        self.keys = self._bootstrap()
        self.get("/api/workflow-definitions")  # the first request of all unpacks the layer, which takes its time

    def _action_policy(self) -> str:
        """What the AWS actions of workflows may do: send to one queue."""
        allowed = {"Effect": "Allow", "Action": "sqs:SendMessage", "Resource": f"arn:aws:sqs:{REGION}:*:{ORDERS}"}
        document = json.dumps({"Version": "2012-10-17", "Statement": [allowed]})
        made = self.aws.client("iam").create_policy(PolicyName="test-actions", PolicyDocument=document)
        return str(made["Policy"]["Arn"])

    def _actions_layer(self) -> str:
        """A layer with the actions of these tests, as a user adds their own."""
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w") as archive:
            archive.write(Path(__file__).with_name("deadly.py"), "python/deadly.py")
        answer = self.aws.client("lambda").publish_layer_version(
            LayerName="test-actions", Content={"ZipFile": packed.getvalue()}, CompatibleRuntimes=[RUNTIME]
        )
        return str(answer["LayerVersionArn"])

    def _sam(self, *arguments: str) -> None:
        environment = {
            **os.environ,
            **self.aws.credentials,
            "SAM_CLI_TELEMETRY": "0",
            "DUCTOR_RUNTIME": RUNTIME,
            "DUCTOR_ARCHITECTURE": ARCHITECTURE,
            "PYTHON": sys.executable,
        }
        command = [str(TOOLS / "sam" / "bin" / "sam"), *arguments]
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"

    def _bootstrap(self) -> dict[str, str]:
        command = [sys.executable, "-c", "from ductor.cli.main import app; app()"]
        command += ["admin", "bootstrap", "--stack", NAME]
        environment = {**os.environ, **self.aws.credentials}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        lines = (line.removeprefix("export ").partition("=") for line in done.stdout.splitlines())
        return {name: value for name, _, value in lines}

    @property
    def url(self) -> str:
        """The API as the emulator serves it."""
        return f"{self.aws.url}/_aws/execute-api/{self.outputs['ApiId']}"

    def client(self) -> httpx.Client:
        headers = {"Authorization": f"Bearer {self.keys['DUCTOR_API_KEY']}"}
        headers["X-Tenant-ID"] = self.keys["DUCTOR_TENANT_ID"]
        return httpx.Client(base_url=self.url, headers=headers, timeout=90)

    def publish(self, document: dict[str, Any]) -> str:
        with self.client() as client:
            created = client.post("/api/workflow-definitions", json=document)
            assert created.status_code == 201, created.text
            draft = created.json()["data"]
            body = {"expected_draft_revision": draft["draft_revision"]}
            published = client.post(f"/api/workflow-definitions/{draft['id']}/publish", json=body)
            assert published.status_code == 200, published.text
            return str(published.json()["published"]["id"])

    def trigger(self, definition_id: str, **body: Any) -> str:
        with self.client() as client:
            path = f"/api/v2/workflow-definitions/{definition_id}:trigger"
            answer = client.post(path, json={"input": {}, **body})
            assert answer.status_code == 202, answer.text
            return str(answer.json()["run_id"])

    def control(self, run_id: str, verb: str, request_id: str) -> None:
        with self.client() as client:
            path = f"/api/v2/workflow-runs/{run_id}:{verb}"
            answer = client.post(path, json={"request_id": request_id})
            assert answer.status_code == 202, answer.text

    def get(self, path: str) -> Any:
        with self.client() as client:
            answer = client.get(path)
            assert answer.status_code == 200, answer.text
            return answer.json()

    def summary(self, run_id: str) -> dict[str, Any]:
        found: dict[str, Any] = self.get(f"/api/workflows/runs/{run_id}")["data"]["summary"]
        return found

    def status(self, run_id: str) -> str:
        return str(self.summary(run_id)["status"])

    def until(self, run_id: str, status: str, seconds: float = PATIENCE_S) -> None:
        """Wait for a status; fails with what the run says when it does not come, or cannot come any more."""

        def reached() -> bool:
            now = self.status(run_id)
            assert now == status or now not in ENDED, json.dumps(self.summary(run_id))
            return now == status

        wait_until(reached, seconds, lambda: json.dumps(self.summary(run_id)))


def wait_until(holds: Callable[[], bool], seconds: float, told: Callable[[], str] = str) -> None:
    """Ask until it holds. Fails after `seconds`, with what `told` says then."""
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, f"not within {seconds} s: {told()}"
        time.sleep(0.25)
