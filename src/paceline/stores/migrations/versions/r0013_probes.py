"""Add the results of probes of running jobs."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None

_NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Create the table of probes."""
    op.create_table(
        "probes",
        sa.Column("id", _NUMBER, primary_key=True),
        sa.Column("run_id", _NUMBER, sa.ForeignKey("runs.id", ondelete="CASCADE"), nullable=False),
        sa.Column("began_at", sa.Double, nullable=False),
        sa.Column("data", sa.Text, nullable=False),
        sa.UniqueConstraint("run_id", "began_at"),
        sqlite_autoincrement=True,
    )
