"""Powertools' resolver for API Gateway HTTP APIs, made safe to call from several threads at once.

The library keeps the request of the moment on a class attribute (one request at a time is all a Lambda sees). Here
each thread has its own, so the local server can run the very same routes on a pool of threads.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from typing import Any, Final

from aws_lambda_powertools.event_handler import APIGatewayHttpResolver
from aws_lambda_powertools.utilities.data_classes import APIGatewayProxyEventV2

_PARAMETER: Final = re.compile(r"<(\w+)>")


class _InFlight(threading.local):
    """What the resolver knows of the request that this thread is serving."""

    def __init__(self) -> None:
        self.event: APIGatewayProxyEventV2 = APIGatewayProxyEventV2({})
        self.context: dict[str, Any] = {}


class ThreadedResolver(APIGatewayHttpResolver):
    """One resolver for all threads. Call `seal()` once, after the last route was added and before the first request.

    A path parameter matches anything but `/` and `:`, so that verbs (`{run}:pause`) and ids never mix.
    """

    def __init__(self) -> None:
        self._in_flight = _InFlight()
        # Explicit, because POWERTOOLS_DEV would otherwise make it answer tracebacks.
        super().__init__(debug=False)

    @property
    def current_event(self) -> APIGatewayProxyEventV2:  # type: ignore[override]
        return self._in_flight.event

    @property
    def context(self) -> dict[str, Any]:
        return self._in_flight.context

    @context.setter
    def context(self, value: dict[str, Any]) -> None:
        self._in_flight.context = value

    def seal(self) -> None:
        """Build every route's call chain now: the library builds it on first use, without a lock."""
        for route in (*self._static_routes, *self._dynamic_routes):
            route._build_middleware_stack(router_middlewares=self._router_middlewares, app=self)

    def methods_for(self, path: str) -> tuple[str, ...]:
        """The methods under which `path` is a route, sorted."""
        routes = (*self._static_routes, *self._dynamic_routes)
        return tuple(sorted({route.method for route in routes if route.rule.match(path)}))

    def add(self, method: str, path: str, endpoint: Callable[..., Any]) -> None:
        """Register `endpoint`, called with the path parameters by name."""
        self.route(path, method=method)(endpoint)

    def _to_proxy_event(self, event: dict[str, Any]) -> APIGatewayProxyEventV2:
        self._in_flight.event = APIGatewayProxyEventV2(event)
        return self._in_flight.event

    def _push_processed_stack_frame(self, frame: str) -> None:
        """The library's debugging trace, shared by all threads: not kept."""

    @staticmethod
    def _compile_regex(rule: str, base_regex: str = "^{}$") -> re.Pattern[str]:
        return re.compile(base_regex.format(_PARAMETER.sub(r"(?P<\1>[^/:]+)", rule)))
