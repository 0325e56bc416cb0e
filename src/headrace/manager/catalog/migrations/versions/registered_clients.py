"""Create the table of registered clients."""

from alembic import op
from sqlalchemy import BigInteger, Column, Integer, String

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    op.create_table(
        "clients",
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
