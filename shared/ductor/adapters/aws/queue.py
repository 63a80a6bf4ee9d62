"""The queues on SQS: batched sends that survive partial failure, and the receiving end for tools and tests.

On Lambda the event source mapping receives and acknowledges; there only sending, retrying and burying are used.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from ductor.adapters import rules
from ductor.adapters.aws import faults, texts
from ductor.adapters.aws.age import oldest_age_ms
from ductor.adapters.aws.clients import Clients
from ductor.ports import Clock, Message, Outgoing, UnavailableError

MAX_ENTRIES: Final = 10
MAX_POLL_S: Final = 5
_REMEMBERED: Final = 1_000
_REVIVING_MS: Final = 60_000
_MAX_REASON: Final = 2_048

# What a receipt of the past is answered with. It means that the message is no longer ours, which is no error.
_TOO_LATE: Final = frozenset(
    {"InvalidParameterValue", "MessageNotInflight", "AWS.SimpleQueueService.MessageNotInflight"}
)
_NO_RECEIPT: Final = "ReceiptHandleIsInvalid"

_SYSTEM: Final = ["MessageGroupId", "ApproximateReceiveCount", "SentTimestamp"]


class SqsQueue:
    """`ports.Queue` on SQS. A receive takes at most ten messages of one group: SQS blocks the group meanwhile.

    `dead_letters_url` is the queue that `dead_letter` moves to; it is FIFO when this one is.
    """

    def __init__(self, url: str, dead_letters_url: str, clients: Clients, clock: Clock) -> None:
        self.fifo = url.endswith(".fifo")
        self._url = url
        self._dead_letters_url = dead_letters_url
        self._clients = clients
        self._clock = clock
        self._received: OrderedDict[str, Message] = OrderedDict()

    def send(self, messages: Sequence[Outgoing]) -> tuple[int, ...]:
        """Send in order, ten and 1 MiB at a time. In a FIFO queue what follows a refused entry of its group is refused

        too, so that a repetition keeps the order. Raises ValueError for what SQS will never take, UnavailableError.
        """
        rules.check_outgoing(messages, fifo=self.fifo)
        entries = [self._entry(place, message) for place, message in enumerate(messages)]
        failed: list[int] = []
        broken: set[str] = set()
        for batch in _batches(entries):
            sendable = [entry for entry in batch if entry.get("MessageGroupId") not in broken]
            refused = self._send_batch(self._url, sendable) if sendable else set()
            for entry in batch:
                group = entry.get("MessageGroupId")
                if entry["Id"] in refused or group in broken:
                    failed.append(int(entry["Id"]))
                    if group is not None:
                        broken.add(group)
        return tuple(failed)

    def receive(self, limit: int, *, visibility_ms: int, wait_ms: int = 0) -> tuple[Message, ...]:
        """Take up to `limit`, in rounds of ten; wait up to `wait_ms` for the first. Both times round up to seconds."""
        rules.check_limit(limit)
        rules.check_visibility(visibility_ms)
        found: dict[str, Message] = {}
        left_s = math.ceil(wait_ms / 1000)
        while len(found) < limit:
            wait_s = 0 if found else min(left_s, MAX_POLL_S)
            got = self._poll(self._url, min(MAX_ENTRIES, limit - len(found)), visibility_ms, wait_s)
            found.update((raw["MessageId"], _message(raw)) for raw in got)
            left_s -= wait_s
            if visibility_ms == 0 or (not got and (found or left_s <= 0)):
                break  # what is visible at once would be received over and over
        for message in found.values():
            self._remember(message)
        return tuple(found.values())

    def ack(self, receipts: Sequence[str]) -> None:
        for chunk in _chunks(receipts):
            entries = [{"Id": str(place), "ReceiptHandle": receipt} for place, receipt in enumerate(chunk)]
            with faults.translated():
                answer = self._clients("sqs").delete_message_batch(QueueUrl=self._url, Entries=entries)
            _check_settled(answer)

    def retry(self, receipts: Sequence[str], *, delay_ms: int) -> None:
        """Make visible again after `delay_ms`, rounded up to seconds."""
        rules.check_visibility(delay_ms)
        seconds = math.ceil(delay_ms / 1000)
        for chunk in _chunks(receipts):
            entries = [
                {"Id": str(place), "ReceiptHandle": receipt, "VisibilityTimeout": seconds}
                for place, receipt in enumerate(chunk)
            ]
            with faults.translated():
                answer = self._clients("sqs").change_message_visibility_batch(QueueUrl=self._url, Entries=entries)
            _check_settled(answer)

    def dead_letter(self, receipts: Sequence[str], reason: str) -> None:
        """Copy to the dead letters, then remove. Only what this object has received lately: SQS cannot move by receipt.

        A crash in between leaves both copies. Raises LookupError for a receipt that it does not remember.
        """
        unknown = [receipt for receipt in receipts if receipt not in self._received]
        if unknown:
            raise LookupError(f"{len(unknown)} receipts belong to messages that this process did not receive lately")
        self.bury([self._received[receipt] for receipt in receipts], reason)
        self.ack(receipts)

    def bury(self, messages: Sequence[Message], reason: str) -> None:
        """Copy messages to the dead letters; whoever calls removes them. Repeated within 5 minutes it is one copy."""
        entries = [self._dead_entry(place, message, reason) for place, message in enumerate(messages)]
        for batch in _batches(entries):
            if self._send_batch(self._dead_letters_url, batch):
                raise UnavailableError("the dead-letter queue did not take all messages")

    def oldest_age_ms(self) -> int:
        """By CloudWatch's metric, a few minutes old; 0 where nobody publishes it."""
        return oldest_age_ms(self._clients, self._url, self._clock.now_ms())

    def dead_letters(self, limit: int = 100) -> tuple[tuple[Message, str], ...]:
        """A look at up to ten dead messages with their reasons, oldest first. Their receipts are empty."""
        rules.check_limit(limit)
        found = self._poll(self._dead_letters_url, min(MAX_ENTRIES, limit), 0, 0, ["All"])
        dead = [_dead(raw) for raw in found]
        return tuple(sorted(dead, key=lambda pair: pair[0].sent_at))

    def redrive(self, limit: int = 100) -> int:
        """Send up to `limit` dead messages again, as new ones; how many. A crash in between leaves both copies."""
        rules.check_limit(limit)
        done = 0
        while done < limit:
            found = self._poll(self._dead_letters_url, min(MAX_ENTRIES, limit - done), _REVIVING_MS, 0, ["All"])
            if not found:
                break
            dead = [_dead(raw)[0] for raw in found]
            failed = set(self.send(rules.again(dead, self._clock.now_ms())))
            taken = [raw for place, raw in enumerate(found) if place not in failed]
            for raw in taken:
                with faults.translated():
                    self._clients("sqs").delete_message(
                        QueueUrl=self._dead_letters_url, ReceiptHandle=raw["ReceiptHandle"]
                    )
            done += len(taken)
            if failed:
                raise UnavailableError(f"the queue did not take {len(failed)} messages; {done} were sent again")
        return done

    def _entry(self, place: int, message: Outgoing) -> dict[str, Any]:
        text = texts.body_text(message.body)
        if len(text) > rules.MAX_MESSAGE_BYTES // 4 and len(text.encode()) > rules.MAX_MESSAGE_BYTES:
            raise ValueError(f"a message takes at most {rules.MAX_MESSAGE_BYTES} bytes as text")
        entry: dict[str, Any] = {"Id": str(place), "MessageBody": text}
        if self.fifo:
            if not texts.is_group(message.group):
                raise ValueError("a group consists of printable ASCII characters without spaces")
            entry["MessageGroupId"] = message.group
            entry["MessageDeduplicationId"] = texts.dedup_text(message.dedup_id)
        elif message.delay_ms:
            entry["DelaySeconds"] = math.ceil(message.delay_ms / 1000)
        return entry

    def _dead_entry(self, place: int, message: Message, reason: str) -> dict[str, Any]:
        notes = {
            "reason": reason[:_MAX_REASON] or "-",
            "id": message.id,
            "receives": str(message.receives),
            "sent_at": str(message.sent_at),
        }
        entry: dict[str, Any] = {
            "Id": str(place),
            "MessageBody": texts.body_text(message.body),
            "MessageAttributes": {
                name: {"DataType": "String", "StringValue": texts.body_text(value.encode("utf-8", "replace"))}
                for name, value in notes.items()
            },
        }
        if self.fifo:
            entry["MessageGroupId"] = message.group
            entry["MessageDeduplicationId"] = message.id
        return entry

    def _send_batch(self, url: str, entries: Sequence[Mapping[str, Any]]) -> set[str]:
        """The ids of entries that were not taken but may be later. Raises ValueError for those that never will be."""
        with faults.translated():
            answer = self._clients("sqs").send_message_batch(QueueUrl=url, Entries=entries)
        refused = answer.get("Failed", ())
        for entry in refused:
            if entry.get("SenderFault") and "hrottl" not in entry["Code"]:
                raise ValueError(f"{entry['Code']}: {entry.get('Message', '')}")
        return {entry["Id"] for entry in refused}

    def _poll(
        self, url: str, count: int, visibility_ms: int, wait_s: int, attributes: Sequence[str] = ()
    ) -> list[dict[str, Any]]:
        with faults.translated():
            answer = self._clients("sqs").receive_message(
                QueueUrl=url,
                MaxNumberOfMessages=count,
                VisibilityTimeout=math.ceil(visibility_ms / 1000),
                WaitTimeSeconds=wait_s,
                MessageSystemAttributeNames=_SYSTEM,
                MessageAttributeNames=list(attributes),
            )
        return list(answer.get("Messages", ()))

    def _remember(self, message: Message) -> None:
        self._received[message.receipt] = message
        if len(self._received) > _REMEMBERED:
            self._received.popitem(last=False)


def _message(raw: Mapping[str, Any]) -> Message:
    system = raw["Attributes"]
    return Message(
        id=raw["MessageId"],
        body=texts.body_bytes(raw["Body"]),
        group=system.get("MessageGroupId", ""),
        receipt=raw["ReceiptHandle"],
        receives=int(system["ApproximateReceiveCount"]),
        sent_at=int(system["SentTimestamp"]),
    )


def _dead(raw: Mapping[str, Any]) -> tuple[Message, str]:
    notes = {
        name: texts.body_bytes(value["StringValue"]).decode()
        for name, value in raw.get("MessageAttributes", {}).items()
    }
    message = Message(
        id=notes.get("id", raw["MessageId"]),
        body=texts.body_bytes(raw["Body"]),
        group=raw["Attributes"].get("MessageGroupId", ""),
        receipt="",
        receives=int(notes.get("receives", 0)),
        sent_at=int(notes.get("sent_at", raw["Attributes"]["SentTimestamp"])),
    )
    return message, notes.get("reason", "moved by the queue itself")


def _batches(entries: Iterable[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    """Ten entries at most, and 1 MiB together, in order."""
    batch: list[dict[str, Any]] = []
    size = 0
    for entry in entries:
        length = len(entry["MessageBody"].encode()) + _attributes_size(entry)
        if batch and (len(batch) == MAX_ENTRIES or size + length > rules.MAX_MESSAGE_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(entry)
        size += length
    if batch:
        yield batch


def _attributes_size(entry: Mapping[str, Any]) -> int:
    values = entry.get("MessageAttributes", {}).items()
    return sum(len(name) + len("String") + len(value["StringValue"].encode()) for name, value in values)


def _chunks(receipts: Sequence[str]) -> Iterator[Sequence[str]]:
    for start in range(0, len(receipts), MAX_ENTRIES):
        yield receipts[start : start + MAX_ENTRIES]


def _check_settled(answer: Mapping[str, Any]) -> None:
    """A receipt of the past is fine, one that SQS never gave out is not, and a busy SQS is told."""
    for entry in answer.get("Failed", ()):
        if entry["Code"] == _NO_RECEIPT:
            raise ValueError(f"no receive returned this receipt: {entry.get('Message', '')}")
        if entry["Code"] not in _TOO_LATE:
            raise UnavailableError(f"{entry['Code']}: {entry.get('Message', '')}")
