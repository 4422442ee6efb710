"""The script that Alembic runs for each command. The caller provides the connection, lock and transaction."""

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
