"""Runs, their replicas, what happened to them and what was measured."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

_NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def _key() -> sa.Column[int]:
    return sa.Column("id", _NUMBER, primary_key=True)


def _owner(table: str) -> sa.Column[int]:
    target = sa.ForeignKey(f"{table}s.id", ondelete="CASCADE")
    return sa.Column(f"{table}_id", _NUMBER, target, nullable=False)


def upgrade() -> None:
    """Make every table."""
    _make_runs()
    _make_journals()
    _make_measurements()


def _make_runs() -> None:
    op.create_table(
        "runs",
        _key(),
        sa.Column("name", sa.Text, nullable=False, unique=True),
        sa.Column("engine", sa.Text, nullable=False),
        sa.Column("directory", sa.Text, nullable=False),
        sa.Column("submitted_at", sa.Double, nullable=False),
        sa.Column("phase", sa.Text, nullable=False),
        sa.Column("started_at", sa.Double),
        sa.Column("finished_at", sa.Double),
        sa.Column("ttl_after_finished_seconds", sa.Double),
        sa.Column("replicas", sa.Text, nullable=False),
        sa.Column("message", sa.Text, nullable=False),
        sa.Column("labels", sa.Text, nullable=False),
        sa.Column("notes", sa.Text, nullable=False),
        sa.Column("source", sa.LargeBinary, nullable=False),
        sa.Column("spec", sa.Text, nullable=False),
        sa.Column("state", sa.Text, nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_index("runs_by_submitted_at", "runs", ["submitted_at"])
    op.create_index("runs_by_phase", "runs", ["phase"])
    op.create_table(
        "replicas",
        _key(),
        _owner("run"),
        sa.Column("role", sa.Text, nullable=False),
        sa.Column("number", sa.Integer, nullable=False),
        sa.Column("phase", sa.Text, nullable=False),
        sa.Column("attempt", sa.Integer, nullable=False),
        sa.Column("restarts", sa.Integer, nullable=False),
        sa.Column("memory_bytes", sa.BigInteger),
        sa.Column("exit", sa.Text),
        sa.Column("host", sa.Text),
        sa.Column("address", sa.Text),
        sa.Column("pid", sa.BigInteger),
        sa.Column("cores", sa.Text, nullable=False, server_default="[]"),
        sa.UniqueConstraint("run_id", "role", "number", name="replicas_by_run"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "spools",
        _owner("replica"),
        sa.Column("attempt", sa.Integer, nullable=False),
        sa.Column("position", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("replica_id", "attempt"),
    )


def _make_journals() -> None:
    op.create_table(
        "events",
        _key(),
        _owner("run"),
        sa.Column("at", sa.Double, nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("message", sa.Text, nullable=False),
        sa.Column("replica", sa.Text),
        sa.Column("attempt", sa.Integer),
        sqlite_autoincrement=True,
    )
    op.create_index("events_by_run", "events", ["run_id", "id"])
    op.create_table(
        "requests",
        _key(),
        _owner("run"),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("at", sa.Double, nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_index("requests_by_run", "requests", ["run_id", "id"])


def _make_measurements() -> None:
    op.create_table(
        "samples",
        _key(),
        _owner("replica"),
        sa.Column("attempt", sa.Integer, nullable=False),
        sa.Column("at", sa.Double, nullable=False),
        sa.Column("interval_seconds", sa.Double, nullable=False),
        sa.Column("cpu_cores", sa.Double),
        sa.Column("cpu_limit_cores", sa.Double),
        sa.Column("throttled_seconds", sa.Double),
        sa.Column("memory_bytes", sa.BigInteger),
        sa.Column("memory_limit_bytes", sa.BigInteger),
        sa.Column("network_received_bytes", sa.BigInteger),
        sa.Column("network_sent_bytes", sa.BigInteger),
        sa.Column("voluntary_switches", sa.BigInteger),
        sa.Column("involuntary_switches", sa.BigInteger),
        sa.Column("threads", sa.BigInteger),
        sa.Column("neighbours_cpu_cores", sa.Double),
        sa.Column("gpu_utilization", sa.Double),
        sa.Column("gpu_memory_bytes", sa.BigInteger),
    )
    op.create_table(
        "step_reports",
        _key(),
        _owner("replica"),
        sa.Column("attempt", sa.Integer, nullable=False),
        sa.Column("at", sa.Double, nullable=False),
        sa.Column("interval_seconds", sa.Double),
        sa.Column("step", sa.BigInteger),
        sa.Column("steps", sa.BigInteger),
        sa.Column("examples", sa.BigInteger),
        sa.Column("loss", sa.Double),
        sa.Column("input_wait_seconds", sa.Double),
        sa.Column("total_steps", sa.BigInteger),
    )
    op.create_table(
        "evaluations",
        _key(),
        _owner("replica"),
        sa.Column("attempt", sa.Integer, nullable=False),
        sa.Column("at", sa.Double, nullable=False),
        sa.Column("step", sa.BigInteger),
        sa.Column("examples", sa.BigInteger),
        sa.Column("auc", sa.Double),
        sa.Column("log_loss", sa.Double),
        sa.Column("accuracy", sa.Double),
    )
    for table in ("samples", "step_reports", "evaluations"):
        op.create_index(f"{table}_by_replica", table, ["replica_id", "at"])


def downgrade() -> None:
    """Remove every table."""
    for table in (
        "evaluations", "step_reports", "samples", "requests", "events", "spools", "replicas", "runs",
    ):  # fmt: skip
        op.drop_table(table)
