"""JSON logs and embedded metrics of a function. No metric has a run as its dimension: each would be paid for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from aws_lambda_powertools import Logger, Metrics
from aws_lambda_powertools.metrics import MetricUnit

NAMESPACE: Final = "Ductor"
_ROOT: Final = "ductor"


class Telemetry:
    """One per function. Its logger is that of the whole package, so everything that Ductor logs is JSON."""

    def __init__(self, function: str) -> None:
        self.log = Logger(service=_ROOT, function=function)
        self._metrics = Metrics(namespace=NAMESPACE, service=function)

    @contextmanager
    def about(self, run_id: str) -> Iterator[None]:
        """Every line that this thread logs within names the run and, once it is known, its tenant."""
        self.log.thread_safe_append_keys(run_id=run_id)
        try:
            yield
        finally:
            self.log.thread_safe_remove_keys(["run_id", "tenant"])

    def tenant(self, tenant: str) -> None:
        """Name the tenant too, until the end of `about`."""
        self.log.thread_safe_append_keys(tenant=tenant)

    def count(self, name: str, number: int) -> None:
        """Add to a metric of this invocation; nothing is written for 0."""
        if number:
            self._metrics.add_metric(name=name, unit=MetricUnit.Count, value=number)

    def flush(self) -> None:
        """Write the metrics of this invocation, if there are any, and forget them."""
        if self._metrics.metric_set:
            self._metrics.flush_metrics()
