"""Lists are of the runs of one engine, and count them: without reading every row, job file and all."""

from __future__ import annotations

from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the index."""
    op.create_index("runs_by_engine", "runs", ["engine", "submitted_at", "name"])


def downgrade() -> None:
    """Remove it."""
    op.drop_index("runs_by_engine", "runs")
