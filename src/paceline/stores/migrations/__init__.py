"""The history of the schema, for Alembic. Nothing here is imported while a database is at the newest one."""
