"""The tables of the catalog, as the newest migration leaves them. Times are milliseconds since 1970."""

from sqlalchemy import BigInteger, Boolean, Column, Index, Integer, LargeBinary, MetaData, String, Table, Text

REVISION = "0002"
"""The newest migration."""

metadata = MetaData()

users = Table(
    "users",
    metadata,
    Column("name", String(64), primary_key=True),
    Column("role", String(10), nullable=False),
    Column("password", String(200), nullable=False),
    Column("created_ms", BigInteger, nullable=False),
)

tokens = Table(
    "tokens",
    metadata,
    Column("digest", LargeBinary(32), primary_key=True),
    Column("id", String(16), nullable=False, unique=True),
    Column("user", String(64), nullable=False, index=True),
    Column("description", String(200), nullable=False),
    Column("created_ms", BigInteger, nullable=False),
    Column("expires_ms", BigInteger),
)

sessions = Table(
    "sessions",
    metadata,
    Column("digest", LargeBinary(32), primary_key=True),
    Column("user", String(300), nullable=False, index=True),
    Column("role", String(10)),
    Column("created_ms", BigInteger, nullable=False),
    Column("used_ms", BigInteger, nullable=False),
    Column("expires_ms", BigInteger, nullable=False, index=True),
)
"""`role` is null for a user of the catalog, whose role is that of the table `users`."""

login_failures = Table(
    "login_failures",
    metadata,
    Column("subject", String(400), primary_key=True),
    Column("count", Integer, nullable=False),
    Column("changed_ms", BigInteger, nullable=False, index=True),
)

identity_logins = Table(
    "identity_logins",
    metadata,
    Column("digest", LargeBinary(32), primary_key=True),
    Column("nonce", String(64), nullable=False),
    Column("verifier", String(128), nullable=False),
    Column("expires_ms", BigInteger, nullable=False, index=True),
)
"""Logins at an identity provider that have begun, by the digest of their state."""

leases = Table(
    "leases",
    metadata,
    Column("name", String(20), primary_key=True),
    Column("holder", String(32), nullable=False),
    Column("epoch", BigInteger, nullable=False),
    Column("expires_ms", BigInteger, nullable=False),
)

managers = Table(
    "managers",
    metadata,
    Column("id", String(32), primary_key=True),
    Column("url", String(300), nullable=False),
    Column("version", String(40), nullable=False),
    Column("started_ms", BigInteger, nullable=False),
    Column("seen_ms", BigInteger, nullable=False),
)

secrets = Table(
    "secrets",
    metadata,
    Column("name", String(20), primary_key=True),
    Column("value", LargeBinary(32), nullable=False),
)
"""Keys that the managers share."""

audit = Table(
    "audit",
    metadata,
    Column("id", BigInteger().with_variant(Integer, "sqlite"), primary_key=True, autoincrement=True),
    Column("time_ms", BigInteger, nullable=False, index=True),
    Column("user", String(300), nullable=False),
    Column("address", String(64), nullable=False),
    Column("request_id", String(64), nullable=False),
    Column("action", String(200), nullable=False),
    Column("resource", String(1000), nullable=False),
    Column("status", Integer, nullable=False),
    Column("detail", Text, nullable=False),
)

clients = Table(
    "clients",
    metadata,
    Column("id", String(32), primary_key=True),
    Column("owner", String(300), nullable=False, index=True),
    Column("kind", String(10), nullable=False),
    Column("name", String(100), nullable=False),
    Column("topic", String(249), nullable=False),
    Column("partition", Integer),
    Column("delivery", String(20), nullable=False),
    Column("created_ms", BigInteger, nullable=False),
    Column("seen_ms", BigInteger, nullable=False, index=True),
    Column("turn", String(16)),
    Column("turn_ends_ms", BigInteger),
)
"""Registered producers and consumers; `turn` is the request that reads for a consumer at the moment."""

masks = Table(
    "masks",
    metadata,
    Column("id", String(16), primary_key=True),
    Column("topic", String(250), nullable=False),
    Column("is_prefix", Boolean, nullable=False),
    Column("field", String(500), nullable=False),
    Column("action", String(10), nullable=False),
    Column("visible_to", String(10), nullable=False),
    Column("created_ms", BigInteger, nullable=False),
)

topic_minutes = Table(
    "topic_minutes",
    metadata,
    Column("topic", String(249), primary_key=True),
    Column("minute", BigInteger, primary_key=True),
    Column("records", BigInteger, nullable=False),
    Index("topic_minutes_by_time", "minute"),
)
"""Records written to a topic in a minute; `minute` is the number of the minute since 1970."""

lag_minutes = Table(
    "lag_minutes",
    metadata,
    Column("group", String(255), primary_key=True),
    Column("topic", String(249), primary_key=True),
    Column("minute", BigInteger, primary_key=True),
    Column("lag", BigInteger, nullable=False),
    Index("lag_minutes_by_time", "minute"),
)
