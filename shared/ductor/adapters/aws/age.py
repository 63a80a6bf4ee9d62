"""The age of a queue's oldest message, which SQS itself does not answer: CloudWatch knows it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, Final

from ductor.adapters.aws import faults
from ductor.adapters.aws.clients import Clients
from ductor.ports import UnavailableError

_WINDOW_S: Final = 300
_PERIOD_S: Final = 60


def oldest_age_ms(clients: Clients, url: str, now: int) -> int:
    """Milliseconds, by the newest value of the last five minutes; 0 without one. Metric requests cost $10 a million.

    What was waiting then has waited on since: values come some minutes late. Raises UnavailableError when CloudWatch
    does not answer for whatever reason: nobody needs this figure so much as to fail without it.
    """
    end = datetime.fromtimestamp(now / 1000, UTC)
    try:
        points = _points(clients, url, end)
    except faults.AwsRefusedError as refused:
        raise UnavailableError(str(refused)) from refused
    if not points or not points[-1]["Maximum"]:
        return 0
    since = end - points[-1]["Timestamp"] - timedelta(seconds=_PERIOD_S)
    return int((points[-1]["Maximum"] + max(0.0, since.total_seconds())) * 1000)


def _points(clients: Clients, url: str, end: datetime) -> list[dict[str, Any]]:
    with faults.translated():
        answer = clients("cloudwatch").get_metric_statistics(
            Namespace="AWS/SQS",
            MetricName="ApproximateAgeOfOldestMessage",
            Dimensions=[{"Name": "QueueName", "Value": url.rsplit("/", 1)[-1]}],
            StartTime=end - timedelta(seconds=_WINDOW_S),
            EndTime=end + timedelta(seconds=60),
            Period=_PERIOD_S,
            Statistics=["Maximum"],
        )
    return sorted(answer.get("Datapoints", ()), key=lambda point: point["Timestamp"])
