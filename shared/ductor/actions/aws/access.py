"""As whom and where the AWS actions call: one client per service, region and identity. Knows no service's details."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from ductor.actions.aws.errors import not_configured, translated
from ductor.actions.connection import Connection
from ductor.actions.context import ActionContext
from ductor.model.json import JSON

CONNECTION_TYPE: Final = "aws"
SESSION_NAME: Final = "ductor"
"""What the calls of an assumed role are listed under in CloudTrail."""

CONNECT_SECONDS: Final = 5
READ_SECONDS: Final = 20
LONG_READ_SECONDS: Final = 905
"""Of calls that run another's code: the longest Lambda function, and the way there and back."""

TRIES: Final = 4
MAX_CLIENTS: Final = 64

REPEATED: Final = {"mode": "adaptive", "total_max_attempts": TRIES}
"""Backs off, and slows this process down while a service throttles it."""

ONCE: Final = {"mode": "standard", "total_max_attempts": 1}
"""For calls whose repetition the service could not recognise: the step's retry policy alone repeats those."""

Key = tuple[str, str, str]


class AwsSettings(msgspec.Struct, frozen=True):
    """`role_arn`: the role that all calls are made as; empty: the credentials of the process. `enabled` False: none."""

    role_arn: str = ""
    enabled: bool = True


class _Identity(msgspec.Struct, frozen=True):
    """Whose credentials: keys of a connection, else the installation's; with them a role may be assumed."""

    region: str = ""
    role_arn: str = ""
    external_id: str = ""
    key_id: str = ""
    secret: str = ""

    @property
    def mark(self) -> str:
        """Tells identities apart without holding a secret."""
        whole = msgspec.json.encode((self.role_arn, self.external_id, self.key_id, self.secret))
        return hashlib.sha256(whole).hexdigest()


class AwsAccess:
    """Makes calls. Safe to use from several threads; region, credentials and `AWS_ENDPOINT_URL` as boto3 finds them."""

    def __init__(self, settings: AwsSettings = AwsSettings()) -> None:  # noqa: B008 - frozen
        self._settings = settings
        self._lock = threading.Lock()
        self._clients: dict[Key, Any] = {}
        self._sessions: dict[tuple[str, str], Any] = {}

    def call(
        self, ctx: ActionContext, service: str, method: str, params: Mapping[str, Any], region: str = ""
    ) -> dict[str, Any]:
        """The service's answer. Raises ActionError: see `errors.translated`."""
        client = self.client(ctx, service, region)
        with translated(service, method):
            answer: dict[str, Any] = getattr(client, method)(**params)
        return answer

    def client(self, ctx: ActionContext, service: str, region: str = "") -> Any:
        """The client of a service in `region`, else in that of the connection, else in that of the process."""
        if not self._settings.enabled:
            message = (
                "AWS actions are switched off here; an administrator names the policies of what workflows may call "
                "in the parameter ActionPolicies"
            )
            raise not_configured(message)
        identity = _identity(ctx)
        key = (service, region or identity.region, identity.mark)
        found = self._clients.get(key)
        if found is None:
            with self._lock:  # making clients is not thread-safe
                found = self._clients.get(key) or self._made(service, region or identity.region, identity)
                if len(self._clients) >= MAX_CLIENTS:
                    self._clients.pop(next(iter(self._clients)))
                self._clients[key] = found
        return found

    def _made(self, service: str, region: str, identity: _Identity) -> Any:
        with translated(service, ""):
            session = self._session(region, identity)
            return session.create_client(service, region_name=region or None, config=_config(service))

    def _session(self, region: str, identity: _Identity) -> Any:
        """One per identity: it holds the credentials, and what the library has read of its files."""
        key = (identity.mark, region if identity.role_arn or self._settings.role_arn else "")
        if key not in self._sessions:
            if len(self._sessions) >= MAX_CLIENTS:
                self._sessions.pop(next(iter(self._sessions)))
            self._sessions[key] = self._begun(region, identity)
        return self._sessions[key]

    def _begun(self, region: str, identity: _Identity) -> Any:
        import botocore.session

        session = botocore.session.get_session()
        if identity.key_id:
            session.set_credentials(identity.key_id, identity.secret)
        elif self._settings.role_arn:
            session = _assumed(session, region, self._settings.role_arn)
        if identity.role_arn:
            session = _assumed(session, region, identity.role_arn, identity.external_id)
        return session


def _identity(ctx: ActionContext) -> _Identity:
    connection = ctx.connection
    if connection is None:
        return _Identity()
    if connection.type != CONNECTION_TYPE:
        message = f"the connection {connection.slug} is of type {connection.type}; AWS actions take type aws, or none"
        raise not_configured(message)
    key_id = connection.setting("access_key_id")
    role_arn = connection.setting("role_arn")
    return _Identity(
        region=connection.setting("region"),
        role_arn=role_arn,
        # A role that one tenant was given must not serve another that learned its name: AWS's confused deputy.
        external_id=ctx.tenant if role_arn else "",
        key_id=key_id,
        secret=_secret(connection) if key_id else "",
    )


def _secret(connection: Connection) -> str:
    return connection.secret("secret_access_key").reveal()


def _assumed(session: Any, region: str, role_arn: str, external_id: str = "") -> Any:
    """A session as a role, renewed before it ends. Asks for the role with the first call only."""
    import botocore.session
    from botocore.credentials import DeferredRefreshableCredentials, create_assume_role_refresher

    tokens = session.create_client("sts", region_name=region or None, config=_config("sts"))
    asked: dict[str, JSON] = {"RoleArn": role_arn, "RoleSessionName": SESSION_NAME}
    if external_id:
        asked["ExternalId"] = external_id
    made = botocore.session.get_session()
    # The vendor's library has no public door for credentials that renew themselves.
    made._credentials = DeferredRefreshableCredentials(
        method="sts-assume-role", refresh_using=create_assume_role_refresher(tokens, asked)
    )
    return made


def _config(service: str) -> Any:
    from botocore.config import Config

    return Config(
        connect_timeout=CONNECT_SECONDS,
        read_timeout=LONG_READ_SECONDS if service == "lambda" else READ_SECONDS,
        retries=ONCE if service in ("lambda", "sesv2") else REPEATED,
        tcp_keepalive=True,
    )
