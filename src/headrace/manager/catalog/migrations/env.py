"""The environment of the migrations: one transaction, while other managers that start wait for its end."""

from alembic import context
from sqlalchemy import text

from headrace.manager.catalog.engine import WRITES, open_engine
from headrace.manager.catalog.tables import metadata

LOCK = 7_246_318_800
"""The number of the lock in PostgreSQL; SQLite locks the whole database."""

engine = open_engine(context.config.attributes["url"])
with engine.connect().execution_options(**WRITES) as connection:
    context.configure(connection=connection, target_metadata=metadata)
    with context.begin_transaction():
        if connection.dialect.name == "postgresql":
            connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": LOCK})
        context.run_migrations()
engine.dispose()
