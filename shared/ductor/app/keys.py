"""API keys: issuing, checking, revoking. The secret itself is never stored; it is shown once, when it is issued."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterable
from typing import Final

import msgspec

from ductor.app.access import ANY_ENVIRONMENT, ROLE_SCOPES, Caller, effective_scopes
from ductor.app.headers import sort_time
from ductor.app.refusals import invalid, not_found
from ductor.model.errors import ErrorCode, RefusedError, refuse
from ductor.ports import Clock, Ids, Index, Item, Put, Table, UnavailableError

KEY: Final = "KEY"
SECRET_BYTES: Final = 32
CACHE_MS: Final = 60_000
LAST_USED_STEP_MS: Final = 3_600_000
_MAX_CACHED: Final = 10_000
_MAX_HEADER_LENGTH: Final = 512
_NAMES: Final = (("roles", 200), ("environments_read", 63), ("environments_write", 63))
"""Lists of a key, and how long a name in them may be."""

_MAX_NAMES: Final = 100


class KeyGrant(msgspec.Struct, frozen=True, kw_only=True):
    """What a key allows. `expires_at` is epoch ms, 0 = never. `user` is whom it speaks for, empty: nobody."""

    name: str
    scopes: frozenset[str] = frozenset()
    roles: frozenset[str] = frozenset()
    environments_read: frozenset[str] = frozenset({ANY_ENVIRONMENT})
    environments_write: frozenset[str] = frozenset({ANY_ENVIRONMENT})
    default_environment: str = "default"
    expires_at: int = 0
    user: str = ""


class StoredKey(msgspec.Struct, kw_only=True):
    """The row `K#<key id>`/`KEY`.

    `digest` is SHA-256 over salt and secret. The secret is 256 random bits, so there is no dictionary to slow down
    an attacker of: a slow hash (scrypt) would only cost every first request of a key some 50 ms.
    """

    id: str
    tenant: str
    grant: KeyGrant
    salt: str
    digest: str
    created_at: int
    revoked_at: int = 0
    last_used_at: int = 0


class KeyInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A key as administrators see it. Times are epoch ms, 0 = never; `last_used_at` is exact to the hour."""

    id: str
    grant: KeyGrant
    created_at: int
    revoked_at: int
    last_used_at: int


class IssuedKey(msgspec.Struct, frozen=True):
    """A new key; `plaintext` (`dk_<key id>_<secret>`) exists nowhere else."""

    id: str
    plaintext: str


class _Verified(msgspec.Struct, frozen=True):
    caller: Caller
    until: int


def digest(salt: str, secret: str) -> str:
    return hashlib.sha256(f"{salt}:{secret}".encode()).hexdigest()


class Keys:
    """The keys of all tenants.

    A verified key is remembered for `cache_ms` in this process, so that a request costs neither a read nor a hash
    with salt. A revocation is therefore seen here at once and elsewhere after at most `cache_ms`. Where an authorizer
    in front remembers answers too, the two times add up: set `cache_ms` to 0 there.
    """

    def __init__(self, table: Table, clock: Clock, ids: Ids, *, cache_ms: int = CACHE_MS) -> None:
        self._table = table
        self._clock = clock
        self._ids = ids
        self._cache_ms = cache_ms
        self._verified: dict[bytes, _Verified] = {}

    def prepare(self, tenant: str, grant: KeyGrant) -> tuple[IssuedKey, Put]:
        """A new key and the write that makes it valid, for callers that store it together with something else."""
        key_id = self._ids.uuid().replace("-", "")
        secret = self._ids.token(SECRET_BYTES)
        salt = self._ids.token(16)
        row = StoredKey(
            id=key_id,
            tenant=tenant,
            grant=grant,
            salt=salt,
            digest=digest(salt, secret),
            created_at=self._clock.now_ms(),
        )
        return IssuedKey(key_id, f"dk_{key_id}_{secret}"), Put(_item(row, 1))

    def issue(
        self,
        tenant: str,
        name: str,
        scopes: Iterable[str] = (),
        roles: Iterable[str] = (),
        *,
        expires_at: int = 0,
        default_environment: str = "default",
    ) -> IssuedKey:
        """Store a new key for `tenant`. The answer holds the only copy of its secret."""
        return self.issue_grant(
            tenant,
            KeyGrant(
                name=name,
                scopes=frozenset(scopes),
                roles=frozenset(roles),
                expires_at=expires_at,
                default_environment=default_environment,
            ),
        )

    def issue_grant(self, tenant: str, grant: KeyGrant) -> IssuedKey:
        """Store a new key with all of its limits spelled out.

        Refuses a name that is empty or over 200 characters, a key that could do nothing, one that is over already, and
        more than 100 roles or environments, or longer ones than there can be.
        """
        if not 1 <= len(grant.name) <= 200:
            raise invalid("FIELD_INVALID", "name the key with 1 to 200 characters", "name")
        if len(grant.user) > 200:
            raise invalid("FIELD_INVALID", "at most 200 characters", "user")
        if not effective_scopes(grant.scopes, grant.roles):
            message = f"such a key could do nothing; give it scopes, or a role that has some: {', '.join(ROLE_SCOPES)}"
            raise invalid("FIELD_REQUIRED", message, "scopes")
        _check_names(grant)
        if grant.expires_at and grant.expires_at <= self._clock.now_ms():
            raise invalid("FIELD_INVALID", "this moment has passed; give a later one, or none", "expires_at")
        issued, put = self.prepare(tenant, grant)
        self._table.write([put])
        return issued

    def authenticate(self, authorization: str | None) -> Caller:
        """The caller behind an `Authorization: Bearer dk_…` header.

        Raises UNAUTHENTICATED with `KEY_MISSING`, `KEY_INVALID`, `KEY_REVOKED` or `KEY_EXPIRED`; the last two only to
        who holds the right secret.
        """
        plaintext = _bearer(authorization)
        now = self._clock.now_ms()
        # Even in memory only a digest of the key is kept; the comparison is then on values nobody can choose.
        name = hashlib.sha256(plaintext.encode("utf-8", "replace")).digest()
        known = self._verified.get(name)
        if known is not None and now < known.until:
            return known.caller
        self._verified.pop(name, None)
        row = self._verify(plaintext, now)
        caller = _caller(row)
        until = min(now + self._cache_ms, row.grant.expires_at or now + self._cache_ms)
        if until > now:
            if len(self._verified) >= _MAX_CACHED:
                self._verified.clear()
            self._verified[name] = _Verified(caller, until)
        return caller

    def revoke(self, tenant: str, key_id: str) -> KeyInfo:
        """Make a key invalid for ever; revoking twice is the same as once. NOT_FOUND for another tenant's key."""
        while True:
            item = self._table.get(f"K#{key_id}", KEY)
            row = _decode(item) if item else None
            if item is None or row is None or row.tenant != tenant:
                raise not_found("KEY_NOT_FOUND", "this tenant has no such API key")
            if not row.revoked_at:
                row.revoked_at = self._clock.now_ms()
                if self._table.write([Put(_item(row, item.version + 1), item.version)]) is not None:
                    continue
            self._forget(key_id)
            return _info(row)

    def list(self, tenant: str) -> tuple[KeyInfo, ...]:
        """All keys of a tenant in the order they were issued, revoked ones too."""
        found: list[KeyInfo] = []
        cursor: str | None = None
        while True:
            page = self._table.query(f"KT#{tenant}", index=Index.I1, cursor=cursor)
            rows = self._table.batch_get([(item.pk, item.sk) for item in page.items])
            found += [_info(_decode(rows[item.pk, item.sk])) for item in page.items if (item.pk, item.sk) in rows]
            cursor = page.cursor
            if cursor is None:
                return tuple(found)

    def _verify(self, plaintext: str, now: int) -> StoredKey:
        prefix, _, rest = plaintext.partition("_")
        key_id, _, secret = rest.partition("_")
        if prefix != "dk" or not (key_id.isascii() and key_id.isalnum()) or not secret:
            raise _unauthenticated("KEY_INVALID", "an API key looks like dk_<key id>_<secret>")
        item = self._table.get(f"K#{key_id}", KEY)
        row = _decode(item) if item else None
        offered = digest(row.salt if row else "", secret.encode("utf-8", "replace").decode())
        if item is None or row is None or not hmac.compare_digest(offered, row.digest):
            raise _unauthenticated("KEY_INVALID", "this API key is not known here")
        if row.revoked_at:
            raise _unauthenticated("KEY_REVOKED", "this API key was revoked")
        if row.grant.expires_at and now >= row.grant.expires_at:
            raise _unauthenticated("KEY_EXPIRED", "this API key has expired")
        self._touch(item, row, now)
        return row

    def _touch(self, item: Item, row: StoredKey, now: int) -> None:
        """Note the use, at most once an hour. Best effort: whoever changed the row meanwhile wins."""
        if now - row.last_used_at < LAST_USED_STEP_MS:
            return
        row.last_used_at = now
        try:
            self._table.write([Put(_item(row, item.version + 1), item.version)])
        except UnavailableError:
            # A busy table must not lock out a caller whose key was read and found good.
            return

    def _forget(self, key_id: str) -> None:
        # A copy, because other threads may add to the cache while it is searched.
        for name, known in tuple(self._verified.items()):
            if known.caller.key_id == key_id:
                self._verified.pop(name, None)


def _check_names(grant: KeyGrant) -> None:
    for field, longest in _NAMES:
        names: frozenset[str] = getattr(grant, field)
        if len(names) > _MAX_NAMES:
            raise invalid("FIELD_INVALID", f"at most {_MAX_NAMES} of them", field)
        if not all(name.strip() and len(name) <= longest for name in names):
            raise invalid("FIELD_INVALID", f"each has 1 to {longest} characters", field)


def _bearer(authorization: str | None) -> str:
    if not authorization:
        raise _unauthenticated("KEY_MISSING", "send an API key: Authorization: Bearer dk_…")
    scheme, _, plaintext = authorization.strip().partition(" ")
    if scheme.lower() != "bearer" or not plaintext.strip() or len(authorization) > _MAX_HEADER_LENGTH:
        raise _unauthenticated("KEY_INVALID", "the header must read: Authorization: Bearer dk_…")
    return plaintext.strip()


def _unauthenticated(code: str, message: str) -> RefusedError:
    return refuse(ErrorCode.UNAUTHENTICATED, code, message, "Authorization")


def _item(row: StoredKey, version: int) -> Item:
    return Item(
        pk=f"K#{row.id}",
        sk=KEY,
        version=version,
        body=msgspec.json.encode(row),
        i1=(f"KT#{row.tenant}", f"{sort_time(row.created_at)}#{row.id}"),
    )


def _decode(item: Item) -> StoredKey:
    return msgspec.json.decode(item.body, type=StoredKey)


def _caller(row: StoredKey) -> Caller:
    grant = row.grant
    return Caller(
        key_id=row.id,
        tenant=row.tenant,
        scopes=effective_scopes(grant.scopes, grant.roles),
        roles=grant.roles,
        environments_read=grant.environments_read,
        environments_write=grant.environments_write,
        default_environment=grant.default_environment,
        user=grant.user,
    )


def _info(row: StoredKey) -> KeyInfo:
    return KeyInfo(
        id=row.id,
        grant=row.grant,
        created_at=row.created_at,
        revoked_at=row.revoked_at,
        last_used_at=row.last_used_at,
    )
