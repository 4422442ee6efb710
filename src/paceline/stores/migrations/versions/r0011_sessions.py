"""Add browser sessions to the store, so that a cookie does not have to contain a token."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the table of sessions."""
    op.create_table(
        "sessions",
        sa.Column("name", sa.Text, primary_key=True),
        sa.Column("who", sa.Text, nullable=False),
        sa.Column("sealed", sa.LargeBinary, nullable=False),
        sa.Column("began_at", sa.Double, nullable=False),
        sa.Column("ends_at", sa.Double, nullable=False),
    )
    op.create_index("sessions_by_caller", "sessions", ["who", "began_at"])
