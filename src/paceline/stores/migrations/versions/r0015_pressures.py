"""Add what the kernel says of waiting for cores, memory and disks."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add a column for each; of earlier samples it is not known."""
    for resource in ("cpu", "memory", "io"):
        op.add_column("samples", sa.Column(f"{resource}_pressure_seconds", sa.Double))
