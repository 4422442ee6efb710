"""How long threads waited for a core, in samples."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column; it is None in older samples."""
    op.add_column("samples", sa.Column("run_delay_seconds", sa.Double))


def downgrade() -> None:
    """Remove the column."""
    op.drop_column("samples", "run_delay_seconds")
