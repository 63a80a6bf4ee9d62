"""The AWS actions on moto, in this process; and answers of services put in the place of moto's."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

import moto
from botocore.awsrequest import AWSResponse
from moto.core.botocore_stubber import MockRawResponse
from tests.contract.moto_backend import CREDENTIALS

from ductor.actions.aws import catalog
from ductor.actions.aws.access import AwsAccess, AwsSettings
from ductor.actions.context import ActionContext
from ductor.actions.errors import ActionError
from ductor.actions.execute import execute

REGION = CREDENTIALS["AWS_REGION"]
ACCOUNT = "123456789012"
KEY = "run-1/step"


class Cloud:
    """An account with the actions that call it. `params` are the parameters of each call, in order."""

    def __init__(self, settings: AwsSettings = AwsSettings()) -> None:  # noqa: B008 - frozen
        self.access = AwsAccess(settings)
        self.params: list[dict[str, Any]] = []
        self._actions = {one.name: one for one in catalog.actions(self.access)}
        self._heard: set[int] = set()

    def client(self, service: str, ctx: ActionContext = ActionContext()) -> Any:  # noqa: B008 - frozen
        """The client that the actions use."""
        made = self.access.client(ctx, service, REGION)
        if id(made) not in self._heard:
            self._heard.add(id(made))
            made.meta.events.register("provide-client-params.*.*", self._hear)
        return made

    def _hear(self, params: dict[str, Any], **_: Any) -> None:
        self.params.append(params)

    def act(self, action: str, args: dict[str, Any], key: str = KEY, **context: Any) -> Any:
        """Run an action as a worker does; its output."""
        ctx = ActionContext(**{"idempotency_key": key, "tenant": "t", **context})
        return execute(self._actions[action], {"region": REGION, **args}, ctx)[0]

    def fails(self, action: str, args: dict[str, Any], key: str = KEY, **context: Any) -> ActionError:
        """Run an action that must fail; its error."""
        try:
            done = self.act(action, args, key, **context)
        except ActionError as fault:
            return fault
        raise AssertionError(f"{action} gave {done}")

    @contextmanager
    def answering(self, service: str, *answers: tuple[int, dict[str, str], bytes] | None) -> Iterator[list[Any]]:
        """The service gives these answers, the last one for ever; None lets moto answer. Yields the requests."""
        client, heard = self.client(service), []

        def answer(request: Any, **_: Any) -> AWSResponse | None:
            heard.append(request)
            given = answers[min(len(heard), len(answers)) - 1]
            if given is None:
                return None
            status, headers, body = given
            return AWSResponse(request.url, status, headers, MockRawResponse(body))

        client.meta.events.register_first("before-send.*.*", answer)
        try:
            yield heard
        finally:
            client.meta.events.unregister("before-send.*.*", answer)


@contextmanager
def account() -> Iterator[None]:
    """A fresh account, and nothing of this machine's."""
    with mock.patch.dict("os.environ", CREDENTIALS), moto.mock_aws(config={"lambda": {"use_docker": False}}):
        yield
