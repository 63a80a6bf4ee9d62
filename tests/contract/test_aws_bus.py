"""The event bus on AWS: what an entry looks like, how many go at once, and which of them are to be sent again."""

from __future__ import annotations

import json
from typing import Any
from unittest import mock

import pytest
from botocore.exceptions import ClientError

from ductor.adapters.aws.bus import EventBridgeBus
from ductor.model.waiting import Event
from ductor.ports import Telling, UnavailableError


class Recording:
    """The `events` client: keeps requests, and refuses the entries whose events it is told."""

    def __init__(self, refused: frozenset[str] = frozenset()) -> None:
        self.requests: list[list[dict[str, Any]]] = []
        self._refused = refused

    def __call__(self, service: str) -> Recording:
        assert service == "events"
        return self

    def put_events(self, Entries: list[dict[str, Any]]) -> dict[str, Any]:  # noqa: N803 - the vendor's name
        self.requests.append(Entries)
        refused = [json.loads(entry["Detail"])["event_id"] in self._refused for entry in Entries]
        answers = [{"ErrorCode": "ThrottlingException"} if one else {"EventId": "e"} for one in refused]
        return {"FailedEntryCount": sum(refused), "Entries": answers}


def telling(number: int, payload: Any = None) -> Telling:
    return Telling(
        "tenant-1",
        Event(event_name="ductor.run.completed", event_id=f"r:{number}", payload=payload, received_at=1_500, depth=2),
    )


def test_an_entry_has_name_tenant_time_and_everything_that_the_way_back_needs() -> None:
    clients = Recording()
    assert EventBridgeBus("bus", clients).put([telling(7, {"run_id": "r"})]) == ()  # type: ignore[arg-type]
    ((entry,),) = clients.requests
    detail = json.loads(entry.pop("Detail"))
    assert entry.pop("Time").timestamp() == 1.5
    assert entry == {
        "EventBusName": "bus",
        "Source": "ductor",
        "DetailType": "ductor.run.completed",
        "Resources": ["ductor/tenant/tenant-1"],
    }
    assert detail == {"event_id": "r:7", "correlation_key": "", "causation_depth": 2, "payload": {"run_id": "r"}}


def test_ten_go_at_once_and_never_more_than_256_kb() -> None:
    clients = Recording()
    bus = EventBridgeBus("bus", clients)  # type: ignore[arg-type]
    assert bus.put([telling(number) for number in range(23)]) == ()
    assert [len(request) for request in clients.requests] == [10, 10, 3]
    clients.requests.clear()
    assert bus.put([telling(number, "x" * 100_000) for number in range(5)]) == ()
    assert [len(request) for request in clients.requests] == [2, 2, 1]


def test_entries_that_were_not_taken_are_named_by_their_places() -> None:
    clients = Recording(frozenset({"r:3", "r:11"}))
    assert EventBridgeBus("bus", clients).put([telling(number) for number in range(13)]) == (3, 11)  # type: ignore[arg-type]


@pytest.mark.parametrize("code", ["ThrottlingException", "AccessDenied", "ResourceNotFoundException"])
def test_whatever_refuses_the_request_as_a_whole_the_events_are_to_be_sent_again(code: str) -> None:
    client = mock.Mock()
    client.put_events.side_effect = ClientError({"Error": {"Code": code, "Message": "no"}}, "PutEvents")
    with pytest.raises(UnavailableError):
        EventBridgeBus("bus", lambda _: client).put([telling(1)])  # type: ignore[arg-type]


def test_nothing_to_tell_is_no_request() -> None:
    clients = Recording()
    assert EventBridgeBus("bus", clients).put([]) == ()  # type: ignore[arg-type]
    assert clients.requests == []
