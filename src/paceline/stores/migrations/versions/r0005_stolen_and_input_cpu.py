"""What a hypervisor took from CPUs, in samples, and what input costs, in step reports."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the columns; they are None in what is older."""
    op.add_column("samples", sa.Column("stolen_cpu_cores", sa.Double))
    op.add_column("step_reports", sa.Column("input_cpu_seconds", sa.Double))


def downgrade() -> None:
    """Remove the columns."""
    op.drop_column("step_reports", "input_cpu_seconds")
    op.drop_column("samples", "stolen_cpu_cores")
