"""The record of a conversation: whoever writes first wins, and what stands in it is what everybody goes on with."""

from __future__ import annotations

import pytest
from tests.unit.ai.room import NODE, RUN, Room, says

from ductor.app.ai_journal import Closed, Conversation, Turn


def turn(text: str, opens: str = "") -> Turn:
    return Turn(answer=says(text), provider="p", model="m", took_ms=1, at=1, attempt=1, opens=opens)


def filled(room: Room, count: int, opens: str = "in") -> Conversation:
    talk = room.journal.open(RUN, NODE, opens, 1)
    for place in range(count):
        room.journal.append(talk, turn(f"{place}", opens if place == 0 else ""), None)
    return talk


@pytest.mark.parametrize("count", [0, 1, 24, 25, 26, 60])
def test_a_conversation_is_read_back_whole(count: int) -> None:
    room = Room()
    talk = filled(room, count)
    assert room.journal.open(RUN, NODE, "in", 1) == talk
    assert len(room.recorded()) == count


def test_the_second_writer_takes_over_what_the_first_wrote() -> None:
    room = Room()
    filled(room, 1)
    one, two = room.journal.open(RUN, NODE, "in", 1), room.journal.open(RUN, NODE, "in", 1)
    first = room.journal.append(one, turn("mine"), None)
    assert room.journal.append(two, turn("yours"), None) == first
    assert one == two


def test_a_closed_conversation_is_followed_by_another() -> None:
    room = Room()
    room.journal.append(filled(room, 2), Closed(code="X", at=1, attempt=1), None)
    again = room.journal.open(RUN, NODE, "in", 2)
    assert (again.number, again.entries) == (2, [])


def test_the_attempt_that_closed_a_conversation_finds_it_closed() -> None:
    room = Room()
    talk = filled(room, 2)
    room.journal.append(talk, Closed(code="X", at=1, attempt=1), None)
    assert room.journal.open(RUN, NODE, "in", 1) == talk


def test_nodes_whose_names_begin_alike_have_their_own() -> None:
    room = Room()
    filled(room, 2)
    assert room.journal.open(RUN, f"{NODE}@1", "in", 1).entries == []
