"""On how many CPUs a replica may run, in samples."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column; it is None in older samples."""
    op.add_column("samples", sa.Column("allowed_cpus", sa.BigInteger))


def downgrade() -> None:
    """Remove the column."""
    op.drop_column("samples", "allowed_cpus")
