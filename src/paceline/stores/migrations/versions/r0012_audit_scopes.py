"""Add a scope to audit entries: a new namespace must not see entries of an old one of the same name."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column; existing entries of a namespace get a scope without the namespace's identity."""
    op.add_column("audits", sa.Column("scope", sa.Text, nullable=False, server_default=""))
    op.execute("UPDATE audits SET scope = namespace || '/' WHERE namespace IS NOT NULL")
