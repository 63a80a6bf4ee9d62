"""Where moto, MiniStack, or SQS itself, does not do what a suite of this folder expects; each named, with its reason.

The tests run all the same and must fail: one that passes is a deviation that has gone, and has to be removed here.
"""

from __future__ import annotations

from enum import Enum
from typing import Any

FIVE_MINUTES = 300_000


class Deviation(Enum):
    """What differs. The first groups are faults of moto and of MiniStack; the last is true of SQS as well."""

    MOTO_FORGETS_IDS = "moto compares ids with messages that are still in the queue, SQS with those of five minutes"
    MOTO_MIXES_GROUPS = "moto ignores DeduplicationScope=messageGroup"
    MOTO_KEEPS_RECEIPTS = "moto accepts the receipt of an earlier delivery; SQS FIFO refuses it as expired"
    MOTO_FREES_GROUPS = "moto delivers a group's oldest message while a younger one is in flight; SQS blocks the group"
    MOTO_HAS_NO_METRICS = "moto publishes no CloudWatch metrics of queues, which the age of a message is read from"

    MINISTACK_FORGETS_RECEIPTS = "MiniStack answers the receipt of an earlier delivery like one that it never gave out"
    MINISTACK_HAS_NO_METRICS = "MiniStack publishes no CloudWatch metrics of queues"

    SQS_GIVES_TEN = "SQS gives at most ten messages of a group at once"
    SQS_PROMISES_NO_TURNS = "SQS does not say which group comes next, and moto always begins with the oldest message"


OF_MOTO = {
    "test_messages_of_a_group_come_in_the_order_sent": Deviation.SQS_GIVES_TEN,
    "test_a_busy_group_lets_the_others_have_their_turn": Deviation.SQS_PROMISES_NO_TURNS,
    "test_the_longest_flight_of_a_group_decides": Deviation.MOTO_FREES_GROUPS,
    "test_an_expired_receipt_acknowledges_nothing": Deviation.MOTO_KEEPS_RECEIPTS,
    "test_an_old_receipt_does_nothing_to_a_new_delivery": Deviation.MOTO_KEEPS_RECEIPTS,
    "test_a_repeated_id_is_swallowed_for_five_minutes": Deviation.MOTO_FORGETS_IDS,
    "test_ids_are_compared_within_their_group": Deviation.MOTO_MIXES_GROUPS,
    "test_the_oldest_age_is_that_of_the_oldest_message_not_acknowledged": Deviation.MOTO_HAS_NO_METRICS,
}


OF_MINISTACK = {
    "test_messages_of_a_group_come_in_the_order_sent": Deviation.SQS_GIVES_TEN,
    "test_a_busy_group_lets_the_others_have_their_turn": Deviation.SQS_PROMISES_NO_TURNS,
    "test_an_expired_receipt_acknowledges_nothing": Deviation.MINISTACK_FORGETS_RECEIPTS,
    "test_a_receipt_of_an_acknowledged_message_fits_no_later_one": Deviation.MINISTACK_FORGETS_RECEIPTS,
    "test_an_old_receipt_does_nothing_to_a_new_delivery": Deviation.MINISTACK_FORGETS_RECEIPTS,
    "test_the_oldest_age_is_that_of_the_oldest_message_not_acknowledged": Deviation.MINISTACK_HAS_NO_METRICS,
}


def deviation(implementation: str, test: str, params: dict[str, Any]) -> Deviation | None:
    """Why that test cannot hold for that implementation, None when it must."""
    if implementation == "ministack":
        return OF_MINISTACK.get(test)
    if implementation != "moto":
        return None
    if test == "test_the_window_is_exact_wherever_it_starts":
        return Deviation.MOTO_FORGETS_IDS if params["gap"] < FIVE_MINUTES else None
    return OF_MOTO.get(test)
