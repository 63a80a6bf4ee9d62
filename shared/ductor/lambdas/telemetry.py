"""JSON logs, embedded metrics and traces of a function. No metric has a run as its dimension: each is paid for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from aws_lambda_powertools import Logger, Metrics
from aws_lambda_powertools.metrics import MetricUnit

if TYPE_CHECKING:
    from aws_lambda_powertools import Tracer

NAMESPACE: Final = "Ductor"
_ROOT: Final = "ductor"

Handler = Callable[[dict[str, Any], Any], dict[str, Any]]
"""(event, context) to answer, as Lambda calls it."""


class Telemetry:
    """One per function. Its logger is that of the whole package, so everything that Ductor logs is JSON.

    `tracing`: Lambda collects traces here. Without it the SDK for them is not even imported.
    """

    def __init__(self, function: str, *, tracing: bool = False) -> None:
        self.log = Logger(service=_ROOT, function=function)
        self._metrics = Metrics(namespace=NAMESPACE, service=function)
        self._function = function
        self._tracer = _tracer() if tracing else None

    def traced(self, handler: Handler) -> Handler:
        """The handler, each call of it a part of the trace that Lambda began. Answers are not written into traces."""
        if self._tracer is None:
            return handler

        def handle(event: dict[str, Any], context: Any) -> dict[str, Any]:
            return handler(event, context)

        handle.__name__ = self._function
        traced: Handler = self._tracer.capture_lambda_handler(handle, capture_response=False)
        return traced

    @contextmanager
    def about(self, run_id: str) -> Iterator[None]:
        """Every line that this thread logs within names the run and, once it is known, its tenant.

        In a trace it is a part of its own that names the run, if this is the thread that the trace follows.
        """
        self.log.thread_safe_append_keys(run_id=run_id)
        try:
            if self._tracer is None:
                yield
                return
            with self._tracer.provider.in_subsegment(name="## run") as part:
                if part is not None:
                    part.put_annotation(key="run_id", value=run_id)
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


def _tracer() -> Tracer:
    """Of all libraries only the one that calls AWS is traced."""
    from aws_lambda_powertools import Tracer

    return Tracer(service=_ROOT, patch_modules=("botocore",))
