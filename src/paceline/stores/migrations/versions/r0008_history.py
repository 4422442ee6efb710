"""History: which model a run trains, how much of it is kept, what was found in it when it had ended."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from paceline import errors
from paceline.model import jobs, trained_models
from paceline.stores import encodings, tables

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

_NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Add the columns and the table, and name the models of the runs that there are."""
    op.add_column("runs", sa.Column("model", tables.Text, nullable=False, server_default=""))
    op.add_column("runs", sa.Column("detail", tables.Text, nullable=False, server_default="full"))
    op.create_index("runs_by_model", "runs", ["model", "submitted_at"])
    op.add_column("digests", sa.Column("used_cores", sa.Double))
    op.add_column("digests", sa.Column("auc", tables.Metric))
    op.add_column("digests", sa.Column("log_loss", tables.Metric))
    op.add_column("digests", sa.Column("codes", tables.Text, nullable=False, server_default=""))
    op.create_table(
        "conclusions",
        sa.Column(
            "run_id", _NUMBER, sa.ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True, nullable=False
        ),
        sa.Column("at", sa.Double, nullable=False),
        sa.Column("version", tables.Text, nullable=False),
        sa.Column("explanation", sa.Text, nullable=False),
    )
    _name_models()


def _name_models() -> None:
    connection = op.get_bind()
    runs = sa.table("runs", sa.column("id"), sa.column("spec"), sa.column("model"))
    for key, text in connection.execute(sa.select(runs.c.id, runs.c.spec)).all():
        try:
            spec = encodings.decode(jobs.JobSpec, text, what="a job")
        except errors.StoreError:  # It stays without; whoever reads the run is told.
            continue
        named = sa.update(runs).where(runs.c.id == key).values(model=trained_models.name_of(spec))
        connection.execute(named)


def downgrade() -> None:
    """Remove them."""
    op.drop_table("conclusions")
    for column in ("codes", "log_loss", "auc", "used_cores"):
        op.drop_column("digests", column)
    op.drop_index("runs_by_model", "runs")
    for column in ("detail", "model"):
        op.drop_column("runs", column)
