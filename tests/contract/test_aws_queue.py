"""What SQS does to sends: batches of ten and of 1 MiB, entries refused one by one, characters it does not take."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from botocore.exceptions import ClientError
from tests.contract.moto_backend import Emulator

from ductor.adapters.aws.age import oldest_age_ms
from ductor.adapters.aws.clients import Clients
from ductor.adapters.aws.queue import SqsQueue
from ductor.adapters.aws.records import messages_of
from ductor.ports import Outgoing, UnavailableError
from ductor.testing.memory import VirtualClock

Refuse = Callable[[dict[str, Any]], dict[str, Any] | None]
BUSY = {"Code": "InternalError", "SenderFault": False, "Message": "busy"}


class Sqs:
    """Takes sends and remembers them; `refuse` gives the failure of an entry."""

    def __init__(self, refuse: Refuse = lambda entry: None) -> None:
        self.batches: list[list[dict[str, Any]]] = []
        self._refuse = refuse

    def __call__(self, service: str) -> Sqs:
        assert service == "sqs"
        return self

    def send_message_batch(self, *, QueueUrl: str, Entries: list[dict[str, Any]]) -> dict[str, Any]:  # noqa: N803
        self.batches.append(Entries)
        return {"Failed": [{"Id": e["Id"], **refused} for e in Entries if (refused := self._refuse(e)) is not None]}

    @property
    def bodies(self) -> list[list[str]]:
        return [[entry["MessageBody"] for entry in batch] for batch in self.batches]


def queue(sqs: Sqs, name: str = "q.fifo") -> SqsQueue:
    return SqsQueue(f"https://sqs/{name}", "", sqs, VirtualClock())  # type: ignore[arg-type]


def ordered(*bodies: str) -> list[Outgoing]:
    return [Outgoing(body.encode(), group=body[0], dedup_id=body) for body in bodies]


@pytest.fixture
def emulator() -> Iterator[Emulator]:
    made = Emulator(VirtualClock())
    yield made
    made.close()


def test_messages_are_sent_ten_at_a_time_in_order() -> None:
    sqs = Sqs()
    names = [f"g{number:02}" for number in range(25)]
    assert queue(sqs).send(ordered(*names)) == ()
    assert sqs.bodies == [names[:10], names[10:20], names[20:]]


def test_a_batch_holds_a_mebibyte_at_most() -> None:
    sqs = Sqs()
    assert queue(sqs, "q").send([Outgoing(b"x" * 500_000)] * 3 + [Outgoing(b"y" * 1_048_576)]) == ()
    assert [len(batch) for batch in sqs.batches] == [2, 1, 1]


def test_what_follows_a_refused_entry_of_its_group_counts_as_refused() -> None:
    sqs = Sqs(lambda entry: BUSY if entry["MessageBody"] == "a1" else None)
    names = ["a0", "b0", "a1", "b1", "a2", *[f"c{n}" for n in range(5)], "a3", "b2"]
    failed = queue(sqs).send(ordered(*names))
    assert [names[place] for place in failed] == ["a1", "a2", "a3"]
    assert "a3" not in sqs.bodies[1]


def test_without_order_only_the_refused_entries_fail() -> None:
    sqs = Sqs(lambda entry: BUSY if entry["MessageBody"] == "b" else None)
    assert queue(sqs, "q").send([Outgoing(b"a"), Outgoing(b"b"), Outgoing(b"c")]) == (1,)


def test_what_sqs_will_never_take_is_refused_for_good() -> None:
    sqs = Sqs(lambda entry: {"Code": "InvalidParameterValue", "SenderFault": True, "Message": "no"})
    with pytest.raises(ValueError, match="InvalidParameterValue"):
        queue(sqs, "q").send([Outgoing(b"a")])


@pytest.mark.parametrize("body", ['{"s":"\uffff"}'.encode(), b"\x00\x01", b"\xff\xfe", b"", b"base64:x", "é".encode()])
def test_any_bytes_travel(emulator: Emulator, body: bytes) -> None:
    emulator.steps.send([Outgoing(body)])
    (message,) = emulator.steps.receive(10, visibility_ms=1_000)
    assert message.body == body


def test_ids_of_other_characters_are_hashed() -> None:
    sqs = Sqs()
    queue(sqs).send([Outgoing(b"1", group="g", dedup_id="für dich"), Outgoing(b"2", group="g", dedup_id="plain~1")])
    ids = [entry["MessageDeduplicationId"] for entry in sqs.batches[0]]
    assert ids == [hashlib.sha256("für dich".encode()).hexdigest(), "plain~1"]


def test_a_dead_letter_of_a_message_that_was_not_received_here_is_refused(emulator: Emulator) -> None:
    with pytest.raises(LookupError):
        emulator.steps.dead_letter(["some receipt"], "why")


def test_a_busy_dead_letter_queue_keeps_the_message(emulator: Emulator, monkeypatch: pytest.MonkeyPatch) -> None:
    emulator.steps.send([Outgoing(b"a")])
    (message,) = emulator.steps.receive(10, visibility_ms=1_000)
    with monkeypatch.context() as patched:
        patched.setattr(SqsQueue, "_send_batch", lambda *_: {"0"})
        with pytest.raises(UnavailableError):
            emulator.steps.dead_letter([message.receipt], "why")
    emulator.clock.advance(1_001)
    assert len(emulator.steps.receive(10, visibility_ms=1_000)) == 1


def test_records_of_lambda_become_messages_of_ours() -> None:
    record = {
        "messageId": "m",
        "receiptHandle": "r",
        "body": "base64:/w==",
        "attributes": {"MessageGroupId": "g", "ApproximateReceiveCount": "3", "SentTimestamp": "1700000000000"},
    }
    (message,) = messages_of({"Records": [record]})
    assert (message.id, message.body, message.group) == ("m", b"\xff", "g")
    assert (message.receipt, message.receives, message.sent_at) == ("r", 3, 1_700_000_000_000)


MIDNIGHT = 1_767_225_600_000


class CloudWatch:
    """Answers with these values of the minutes after midnight."""

    def __init__(self, *points: tuple[int, float]) -> None:
        self._points = points

    def __call__(self, service: str) -> Any:
        assert service == "cloudwatch"
        return self

    def get_metric_statistics(self, **_: Any) -> dict[str, Any]:
        begin = datetime(2026, 1, 1, tzinfo=UTC)
        return {"Datapoints": [{"Timestamp": begin + timedelta(minutes=n), "Maximum": v} for n, v in self._points]}


def age(cloudwatch: Any, minutes: int) -> int:
    return oldest_age_ms(cloudwatch, "https://sqs/q", MIDNIGHT + minutes * 60_000)


def test_the_age_of_a_queue_is_its_newest_metric() -> None:
    assert age(CloudWatch((3, 40.0), (1, 20.0)), 4) == 40_000


def test_what_was_waiting_at_the_newest_metric_has_waited_on() -> None:
    assert age(CloudWatch((3, 40.0)), 6) == 160_000


def test_a_queue_that_was_empty_or_of_which_nothing_is_known_has_no_age() -> None:
    assert age(CloudWatch((3, 0.0)), 6) == age(CloudWatch(), 6) == 0


def test_an_age_that_nobody_may_read_is_an_outage() -> None:
    class Denied(CloudWatch):
        def get_metric_statistics(self, **_: Any) -> dict[str, Any]:
            raise ClientError({"Error": {"Code": "AccessDenied", "Message": "no"}}, "GetMetricStatistics")

    with pytest.raises(UnavailableError, match="AccessDenied"):
        age(Denied(), 4)


def test_a_reading_of_the_age_keeps_a_run_waiting_for_seconds_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")
    config = Clients()("cloudwatch").meta.config
    assert config.connect_timeout + config.read_timeout <= 3
    assert config.retries["total_max_attempts"] == 1
