"""Studies: searches for a better job file, as far as they are."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from paceline.stores import tables

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the table."""
    op.create_table(
        "studies",
        sa.Column("name", tables.Text, primary_key=True),
        sa.Column("kind", tables.Text, nullable=False),
        sa.Column("changed_at", sa.Double, nullable=False),
        sa.Column("data", sa.Text, nullable=False),
    )


def downgrade() -> None:
    """Remove it."""
    op.drop_table("studies")
