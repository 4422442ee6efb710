"""What Alembic runs for each command; the connection, its lock and its transaction are the caller's."""

from __future__ import annotations

from alembic import context

from paceline.stores import databases, tables

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=tables.metadata,
    version_table=databases.VERSION_TABLE,
    transactional_ddl=True,
)
context.run_migrations()
