"""Runs migrations on the connection from ``app.migrate``."""

from alembic import context

from app.db import Base
from app.tables import TABLES

config = context.config

context.configure(
    connection=config.attributes["connection"],
    target_metadata=Base.metadata,
    render_as_batch=True,
    compare_type=True,
)
assert TABLES

with context.begin_transaction():
    context.run_migrations()
