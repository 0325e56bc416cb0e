"""Create the first tables."""

from collections.abc import Iterable

from alembic import op
from sqlalchemy import BigInteger, Boolean, Column, Integer, LargeBinary, String, Text

revision = "0001"
down_revision = None
TEXT_LENGTH_MAX = 200
"""Characters of the longest hash of a password, description and action."""


def upgrade() -> None:
    _users()
    _managers()
    _history()
    op.create_table(
        "masks",
        Column("id", String(16), primary_key=True),
        Column("topic", String(250), nullable=False),
        Column("is_prefix", Boolean, nullable=False),
        Column("field", String(500), nullable=False),
        Column("action", String(10), nullable=False),
        Column("visible_to", String(10), nullable=False),
        Column("created_ms", BigInteger, nullable=False),
    )


def _times(*names: str) -> Iterable[Column[int]]:
    return [Column(f"{name}_ms", BigInteger, nullable=False) for name in names]


def _users() -> None:
    op.create_table(
        "users",
        Column("name", String(64), primary_key=True),
        Column("role", String(10), nullable=False),
        Column("password", String(TEXT_LENGTH_MAX), nullable=False),
        *_times("created"),
    )
    op.create_table(
        "tokens",
        Column("digest", LargeBinary(32), primary_key=True),
        Column("id", String(16), nullable=False, unique=True),
        Column("user", String(64), nullable=False, index=True),
        Column("description", String(TEXT_LENGTH_MAX), nullable=False),
        *_times("created"),
        Column("expires_ms", BigInteger),
    )
    op.create_table(
        "sessions",
        Column("digest", LargeBinary(32), primary_key=True),
        Column("user", String(300), nullable=False, index=True),
        Column("role", String(10)),
        *_times("created", "used"),
        Column("expires_ms", BigInteger, nullable=False, index=True),
    )
    op.create_table(
        "login_failures",
        Column("subject", String(400), primary_key=True),
        Column("count", Integer, nullable=False),
        Column("changed_ms", BigInteger, nullable=False, index=True),
    )
    op.create_table(
        "identity_logins",
        Column("digest", LargeBinary(32), primary_key=True),
        Column("nonce", String(64), nullable=False),
        Column("verifier", String(128), nullable=False),
        Column("expires_ms", BigInteger, nullable=False, index=True),
    )


def _managers() -> None:
    op.create_table(
        "leases",
        Column("name", String(20), primary_key=True),
        Column("holder", String(32), nullable=False),
        Column("epoch", BigInteger, nullable=False),
        *_times("expires"),
    )
    # With the row in place, managers that start together wait for each other instead of both inserting it.
    op.execute("INSERT INTO leases (name, holder, epoch, expires_ms) VALUES ('changes', '', 0, 0)")
    op.create_table(
        "managers",
        Column("id", String(32), primary_key=True),
        Column("url", String(300), nullable=False),
        Column("version", String(40), nullable=False),
        *_times("started", "seen"),
    )
    op.create_table(
        "secrets",
        Column("name", String(20), primary_key=True),
        Column("value", LargeBinary(32), nullable=False),
    )


def _history() -> None:
    op.create_table(
        "audit",
        Column("id", BigInteger().with_variant(Integer, "sqlite"), primary_key=True, autoincrement=True),
        Column("time_ms", BigInteger, nullable=False, index=True),
        Column("user", String(300), nullable=False),
        Column("address", String(64), nullable=False),
        Column("request_id", String(64), nullable=False),
        Column("action", String(TEXT_LENGTH_MAX), nullable=False),
        Column("resource", String(1000), nullable=False),
        Column("status", Integer, nullable=False),
        Column("detail", Text, nullable=False),
    )
    op.create_table(
        "topic_minutes",
        Column("topic", String(249), primary_key=True),
        Column("minute", BigInteger, primary_key=True),
        Column("records", BigInteger, nullable=False),
    )
    op.create_index("topic_minutes_by_time", "topic_minutes", ["minute"])
    op.create_table(
        "lag_minutes",
        Column("group", String(255), primary_key=True),
        Column("topic", String(249), primary_key=True),
        Column("minute", BigInteger, primary_key=True),
        Column("lag", BigInteger, nullable=False),
    )
    op.create_index("lag_minutes_by_time", "lag_minutes", ["minute"])
