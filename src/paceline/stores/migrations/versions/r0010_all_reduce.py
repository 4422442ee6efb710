"""Add the time that a PyTorch rank waits in all-reduce to step reports."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column; it is NULL (not measured) in existing reports."""
    op.add_column("step_reports", sa.Column("all_reduce_seconds", sa.Double))
