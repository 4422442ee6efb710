"""The history of the schema, for Alembic; imported only if a database does not have the newest schema."""
