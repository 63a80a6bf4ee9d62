"""Schedules of EventBridge Scheduler: each sends one text to a queue, at one time or again and again. Knows no rule."""

from __future__ import annotations

from typing import Any, Final

import msgspec
from botocore.exceptions import ClientError

from ductor.adapters.aws import faults
from ductor.adapters.aws.clients import Clients

EXISTS: Final = "ConflictException"
"""The code of a refusal: there is a schedule of that name already."""

_UNKNOWN: Final = "ResourceNotFoundException"


class ScheduleTarget(msgspec.Struct, frozen=True, kw_only=True):
    """Where schedules of one kind live and end: their group, the queue that they send to, the role that may do so."""

    queue_arn: str
    group: str
    role_arn: str

    def request(self, name: str, expression: str, timezone: str, text: str) -> dict[str, Any]:
        """What `create_schedule` and `update_schedule` are asked for."""
        return {
            "Name": name,
            "GroupName": self.group,
            "ScheduleExpression": expression,
            "ScheduleExpressionTimezone": timezone,
            "FlexibleTimeWindow": {"Mode": "OFF"},
            "Target": {"Arn": self.queue_arn, "RoleArn": self.role_arn, "Input": text},
        }

    def delete(self, clients: Clients, name: str) -> None:
        """Remove a schedule, or find that it is gone. Raises ClientError."""
        try:
            clients("scheduler").delete_schedule(Name=name, GroupName=self.group)
        except ClientError as error:
            if faults.code_of(error) != _UNKNOWN:
                raise
