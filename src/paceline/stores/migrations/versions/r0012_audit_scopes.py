"""A namespace that is made anew sees no change of an earlier namespace of the same name."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column; what was changed in a namespace before is of one whose identity is not known."""
    op.add_column("audits", sa.Column("scope", sa.Text, nullable=False, server_default=""))
    op.execute("UPDATE audits SET scope = namespace || '/' WHERE namespace IS NOT NULL")
