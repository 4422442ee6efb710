"""How long a rank of PyTorch waits in all-reduce is kept with its step reports."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column; of reports that were made before it is not measured."""
    op.add_column("step_reports", sa.Column("all_reduce_seconds", sa.Double))
