"""Users, tokens and sessions in the catalog: what the command line and the HTTP API do to them."""

import re
from base64 import urlsafe_b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from hmac import digest as hmac_digest
from typing import Any, NamedTuple

from sqlalchemy import Connection, Row, delete, func, insert, select, update

from headrace.manager.access.roles import ROLES, UserRole
from headrace.manager.catalog.errors import NotInCatalog
from headrace.manager.catalog.tables import sessions, tokens, users
from headrace.manager.limits import (
    SESSION_IDLE_SECONDS_MAX,
    SESSION_SECONDS_MAX,
    SESSIONS_PER_USER_MAX,
    TOKENS_PER_USER_MAX,
    USERS_MAX,
)
from headrace.model.nearest_names import meant
from headrace.operations.errors import OperationError
from headrace.ports.real.entropy import RealEntropy

USER_NAME = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9._@-]{0,63}")
SECRET_BYTES = 32
TOKEN_PREFIX = "hrt_"  # noqa: S105  (marks a token for scanners of secrets)
TOKEN_ID_LENGTH = 12
DAY_MS = 86_400_000


@dataclass(frozen=True, slots=True)
class KnownUser:
    name: str
    role: str
    created_ms: int
    tokens: int
    sessions: int


@dataclass(frozen=True, slots=True)
class KnownToken:
    id: str
    user: str
    description: str
    created_ms: int
    expires_ms: int | None


class UserIdentity(NamedTuple):
    """The user that a credential stands for."""

    name: str
    role: UserRole


def new_secret() -> str:
    return urlsafe_b64encode(RealEntropy().random_bytes(SECRET_BYTES)).decode().rstrip("=")


def digest_of(secret: str) -> bytes:
    """Return what the catalog keeps of a random secret; a copy of the catalog does not contain the secret."""
    return sha256(secret.encode()).digest()


def csrf_token(session: str) -> str:
    """Return the token that a page of the session sends with a change; it does not reveal the session."""
    return hmac_digest(session.encode(), b"csrf", "sha256").hex()


# --- users ---


def have_users(connection: Connection) -> bool:
    return connection.execute(select(users.c.name).limit(1)).first() is not None


def listed_users(connection: Connection) -> list[KnownUser]:
    own_tokens = select(func.count()).where(tokens.c.user == users.c.name).scalar_subquery()
    own_sessions = select(func.count()).where(sessions.c.user == users.c.name).scalar_subquery()
    rows = connection.execute(
        select(users.c.name, users.c.role, users.c.created_ms, own_tokens, own_sessions).order_by(users.c.name)
    )
    return [KnownUser(*row) for row in rows]


def add_user(connection: Connection, name: str, role: str, password_hash: str, *, now: int) -> None:
    if USER_NAME.fullmatch(name) is None:
        raise OperationError(f'"{name}" is no name of a user: use 1 to 64 letters, digits and the characters . _ @ -')
    _check_role(role)
    if _row(connection, name) is not None:
        raise OperationError(f'user "{name}" exists already: change the password or the role instead')
    if connection.execute(select(func.count()).select_from(users)).scalar_one() >= USERS_MAX:
        raise OperationError(f"there are {USERS_MAX} users already: remove one first")
    connection.execute(insert(users).values(name=name, role=role, password=password_hash, created_ms=now))


def set_password(connection: Connection, name: str, password_hash: str) -> None:
    """Change the password, and end the sessions that an old one began."""
    existing_user(connection, name)
    connection.execute(update(users).where(users.c.name == name).values(password=password_hash))
    end_sessions(connection, name)


def set_role(connection: Connection, name: str, role: str) -> None:
    _check_role(role)
    if existing_user(connection, name).role != role:
        _check_admin_remains(connection, name)
        connection.execute(update(users).where(users.c.name == name).values(role=role))


def remove_user(connection: Connection, name: str) -> None:
    """Remove a user with all sessions and tokens."""
    existing_user(connection, name)
    _check_admin_remains(connection, name)
    end_sessions(connection, name)
    connection.execute(delete(tokens).where(tokens.c.user == name))
    connection.execute(delete(users).where(users.c.name == name))


def _check_role(role: str) -> None:
    if role not in ROLES:
        raise OperationError(f'"{role}" is no role: use {", ".join(ROLES)}')


def _check_admin_remains(connection: Connection, without: str) -> None:
    others = (users.c.role == UserRole.ADMIN.label) & (users.c.name != without)
    if connection.execute(select(users.c.name).where(others).limit(1)).first() is None:
        raise OperationError(f'"{without}" is the last admin: add another one first')


def _row(connection: Connection, name: str) -> Row[Any] | None:
    return connection.execute(select(users).where(users.c.name == name)).one_or_none()


def existing_user(connection: Connection, name: str) -> Row[Any]:
    row = _row(connection, name)
    if row is None:
        known = tuple(connection.execute(select(users.c.name)).scalars())
        raise NotInCatalog(f'there is no user "{name}"{meant(name, known)}')
    return row


def password_hash_of(connection: Connection, name: str) -> str | None:
    return connection.execute(select(users.c.password).where(users.c.name == name)).scalar()


# --- tokens ---


def create_token(connection: Connection, user: str, description: str, days: int | None, *, now: int) -> tuple[str, str]:
    """Return the id and the secret of a new token of the user; the secret is not kept."""
    existing_user(connection, user)
    if len(listed_tokens(connection, user)) >= TOKENS_PER_USER_MAX:
        raise OperationError(f'user "{user}" has {TOKENS_PER_USER_MAX} tokens already: delete one first')
    secret = TOKEN_PREFIX + new_secret()
    digest = digest_of(secret)
    token_id = digest.hex()[:TOKEN_ID_LENGTH]
    expires_ms = None if days is None else now + days * DAY_MS
    connection.execute(
        insert(tokens).values(
            digest=digest, id=token_id, user=user, description=description, created_ms=now, expires_ms=expires_ms
        )
    )
    return token_id, secret


def listed_tokens(connection: Connection, user: str | None = None) -> Sequence[KnownToken]:
    columns = (tokens.c.id, tokens.c.user, tokens.c.description, tokens.c.created_ms, tokens.c.expires_ms)
    query = select(*columns).order_by(tokens.c.user, tokens.c.created_ms, tokens.c.id)
    if user is not None:
        query = query.where(tokens.c.user == user)
    return [KnownToken(*row) for row in connection.execute(query)]


def delete_token(connection: Connection, token_id: str, *, user: str | None = None) -> None:
    """Delete a token; with `user`, only if it is a token of that user."""
    found = tokens.c.id == token_id
    if user is not None:
        found &= tokens.c.user == user
    if connection.execute(delete(tokens).where(found)).rowcount == 0:
        raise NotInCatalog(f'there is no token "{token_id}": list them first')


def identity_of_token(connection: Connection, digest: bytes, *, now: int) -> UserIdentity | None:
    query = (
        select(users.c.name, users.c.role)
        .join(tokens, tokens.c.user == users.c.name)
        .where(tokens.c.digest == digest, (tokens.c.expires_ms.is_(None)) | (tokens.c.expires_ms > now))
    )
    row = connection.execute(query).one_or_none()
    return None if row is None else UserIdentity(row.name, ROLES[row.role])


# --- sessions ---


def begin_session(connection: Connection, user: str, *, now: int, role: str | None = None) -> str:
    """Return the secret of a new session; `role` is that of a user of an identity provider."""
    connection.execute(delete(sessions).where(sessions.c.expires_ms <= now))
    own = connection.execute(
        select(sessions.c.digest).where(sessions.c.user == user).order_by(sessions.c.used_ms.desc())
    ).scalars()
    for oldest in [*own][SESSIONS_PER_USER_MAX - 1 :]:
        connection.execute(delete(sessions).where(sessions.c.digest == oldest))
    secret = new_secret()
    expires_ms = now + SESSION_SECONDS_MAX * 1_000
    connection.execute(
        insert(sessions).values(
            digest=digest_of(secret), user=user, role=role, created_ms=now, used_ms=now, expires_ms=expires_ms
        )
    )
    return secret


def identity_of_session(connection: Connection, digest: bytes, *, now: int) -> UserIdentity | None:
    query = (
        select(sessions, users.c.role.label("own_role"))
        .join(users, users.c.name == sessions.c.user, isouter=True)
        .where(sessions.c.digest == digest, sessions.c.expires_ms > now)
    )
    row = connection.execute(query).one_or_none()
    if row is None or row.used_ms + SESSION_IDLE_SECONDS_MAX * 1_000 <= now:
        return None
    role = row.role or row.own_role
    return None if role is None else UserIdentity(row.user, ROLES[role])


def record_use(connection: Connection, digest: bytes, *, now: int) -> None:
    connection.execute(update(sessions).where(sessions.c.digest == digest).values(used_ms=now))


def end_session(connection: Connection, digest: bytes) -> None:
    connection.execute(delete(sessions).where(sessions.c.digest == digest))


def end_sessions(connection: Connection, user: str) -> None:
    connection.execute(delete(sessions).where(sessions.c.user == user))
