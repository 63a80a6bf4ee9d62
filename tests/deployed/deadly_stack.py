"""A deployed stack whose coordinator can be killed: swapped in for a while, and put back as it was."""

from __future__ import annotations

import io
import json
import threading
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.deployed.emulator import RUNTIME
from tests.deployed.stack import Stack, wait_until

VISIBILITY_S = 4
"""How soon intents come again whose coordinator died, in place of the template's three minutes."""

_one_at_a_time = threading.Lock()


class DeadlyCoordinator:
    """Marks runs for the coordinator in `deadly_coordinator.py`, and reads what was delivered to it."""

    def __init__(self, stack: Stack, pause: Callable[[bool], None]) -> None:
        self._place = stack.aws.folder / "tmp"
        self._pause = pause

    @contextmanager
    def held_back(self) -> Iterator[None]:
        """Within, intents only gather in their queue; afterwards they are delivered together."""
        self._pause(True)
        try:
            yield
        finally:
            self._pause(False)

    def poison(self, run_id: str) -> Path:
        """From now on whoever ticks this run is killed, until the file is removed."""
        return self._mark("poison", run_id)

    def lose(self, run_id: str) -> Path:
        """The next batch with this run is worked on in full, and then its function is killed, once."""
        return self._mark("lose", run_id)

    def delivered(self) -> list[list[tuple[str, str, int]]]:
        """Every batch that was delivered: run, message id and number of the delivery of each record."""
        lines = (self._place / "delivered").read_text().splitlines()
        return [[(run_id, message, count) for run_id, message, count in json.loads(line)] for line in lines]

    def delivered_of(self, run_id: str) -> list[tuple[str, int]]:
        """The same of one run, one record after the other."""
        return [(message, count) for batch in self.delivered() for run, message, count in batch if run == run_id]

    def _mark(self, kind: str, run_id: str) -> Path:
        made = self._place / f"{kind}-{run_id}"
        made.touch()
        return made


@contextmanager
def deadly_coordinator(stack: Stack) -> Iterator[DeadlyCoordinator]:
    """Swap it in, with nothing in flight, and back."""
    functions, sqs, queue = stack.aws.client("lambda"), stack.aws.client("sqs"), stack.outputs["IntentsQueueUrl"]
    arn = sqs.get_queue_attributes(QueueUrl=queue, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    (mapping,) = functions.list_event_source_mappings(EventSourceArn=arn)["EventSourceMappings"]
    name = mapping["FunctionArn"]
    was = functions.get_function_configuration(FunctionName=name)
    layers = [layer["Arn"] for layer in was["Layers"]]

    def pause(on: bool) -> None:
        functions.update_event_source_mapping(UUID=mapping["UUID"], Enabled=not on)
        if on:
            wait_until(lambda: _in_flight(sqs, queue) == 0, 60)

    def change(handler: str, using: list[str], visibility: int) -> None:
        pause(True)
        functions.update_function_configuration(FunctionName=name, Handler=handler, Layers=using)
        sqs.set_queue_attributes(QueueUrl=queue, Attributes={"VisibilityTimeout": str(visibility)})
        pause(False)

    with _one_at_a_time:
        change("deadly_coordinator.handler", [*layers, _layer(functions)], VISIBILITY_S)
        try:
            yield DeadlyCoordinator(stack, pause)
        finally:
            change(was["Handler"], layers, 180)


def _layer(functions: Any) -> str:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.write(Path(__file__).with_name("deadly_coordinator.py"), "python/deadly_coordinator.py")
    answer = functions.publish_layer_version(
        LayerName="test-deadly", Content={"ZipFile": packed.getvalue()}, CompatibleRuntimes=[RUNTIME]
    )
    return str(answer["LayerVersionArn"])


def _in_flight(sqs: Any, queue: str) -> int:
    name = "ApproximateNumberOfMessagesNotVisible"
    return int(sqs.get_queue_attributes(QueueUrl=queue, AttributeNames=[name])["Attributes"][name])
