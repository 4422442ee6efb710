"""What a server needs: labels to search by, how jobs did, keys of submits, changes of jobs, who made them."""

from __future__ import annotations

import json

import sqlalchemy as sa
from alembic import op

from paceline.stores import tables

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

_NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Add the tables, and take the labels of the runs that there are."""
    op.create_table(
        "labels",
        _run(),
        sa.Column("key", tables.Text, nullable=False),
        sa.Column("value", tables.Text, nullable=False),
        sa.PrimaryKeyConstraint("run_id", "key"),
    )
    op.create_index("labels_by_value", "labels", ["key", "value"])
    op.create_table(
        "digests",
        _run(primary_key=True),
        sa.Column("at", sa.Double, nullable=False),
        sa.Column("examples_per_second", sa.Double),
        sa.Column("trend", sa.Text, nullable=False),
        sa.Column("progress", sa.Double),
        sa.Column("eta_seconds", sa.Double),
        sa.Column("imbalance", sa.Double),
        sa.Column("code", tables.Text),
        sa.Column("severity", tables.Text),
        sa.Column("finding", tables.Text),
    )
    op.create_table(
        "submits",
        sa.Column("key", tables.Text, primary_key=True),
        _run(),
        sa.Column("fingerprint", tables.Text, nullable=False),
    )
    op.create_index("submits_by_run", "submits", ["run_id"])
    op.create_table(
        "relays",
        sa.Column("id", _NUMBER, primary_key=True),
        _run(),
        sa.Column("asked_at", sa.Double, nullable=False),
        sa.Column("source", sa.LargeBinary, nullable=False),
        sa.Column("before", sa.LargeBinary, nullable=False),
        sa.Column("done_at", sa.Double),
        sqlite_autoincrement=True,
    )
    op.create_index("relays_by_run", "relays", ["run_id", "id"])
    op.create_table(
        "audits",
        sa.Column("id", _NUMBER, primary_key=True),
        sa.Column("at", sa.Double, nullable=False),
        sa.Column("who", tables.Text, nullable=False),
        sa.Column("origin", tables.Text, nullable=False),
        sa.Column("action", tables.Text, nullable=False),
        sa.Column("job", tables.Text),
        sa.Column("namespace", tables.Text),
        sa.Column("detail", tables.Text, nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_index("audits_by_job", "audits", ["job", "id"])
    _take_labels()


def _run(*, primary_key: bool = False) -> sa.Column[int]:
    owner = sa.ForeignKey("runs.id", ondelete="CASCADE")
    return sa.Column("run_id", _NUMBER, owner, primary_key=primary_key, nullable=False)


def _take_labels() -> None:
    connection = op.get_bind()
    runs = sa.table("runs", sa.column("id"), sa.column("labels"))
    labels = sa.table("labels", sa.column("run_id"), sa.column("key"), sa.column("value"))
    made = [
        {"run_id": run, "key": key, "value": value}
        for run, text in connection.execute(sa.select(runs.c.id, runs.c.labels))
        for key, value in json.loads(text).items()
    ]
    if made:
        connection.execute(sa.insert(labels), made)


def downgrade() -> None:
    """Remove them."""
    for name in ("audits", "relays", "submits", "digests", "labels"):
        op.drop_table(name)
