"""Create all tables. Earlier schemas were never released, and stores that have them are refused."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = None
branch_labels = None
depends_on = None

_NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Create the tables; tables that others refer to come first."""
    _make_runs()
    _make_replicas()
    _make_journals()
    _make_measurements()
    for kind in ("sample", "step_report"):
        for name in (f"{kind}_pieces", f"{kind}_blocks"):
            _make_blocks(name)
    _make_outcomes()
    _make_changes()
    _make_probes()
    _make_studies_and_audits()
    _make_sessions()


def _key() -> sa.Column[int]:
    return sa.Column("id", _NUMBER, primary_key=True)


def _owner(table: str, *, primary_key: bool = False) -> sa.Column[int]:
    target = sa.ForeignKey(f"{table}s.id", ondelete="CASCADE")
    return sa.Column(f"{table}_id", _NUMBER, target, primary_key=primary_key, nullable=False)


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
        sa.Column("model", sa.Text, nullable=False, server_default=""),
        sa.Column("detail", sa.Text, nullable=False, server_default="full"),
        sqlite_autoincrement=True,
    )
    op.create_index("runs_by_submitted_at", "runs", ["submitted_at"])
    op.create_index("runs_by_engine", "runs", ["engine", "submitted_at", "name"])
    op.create_index("runs_by_phase", "runs", ["phase"])
    op.create_index("runs_by_model", "runs", ["model", "submitted_at"])


def _make_replicas() -> None:
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
        sa.Column("sent_segments", sa.BigInteger),
        sa.Column("retransmitted_segments", sa.BigInteger),
        sa.Column("run_delay_seconds", sa.Double),
        sa.Column("allowed_cpus", sa.BigInteger),
        sa.Column("stolen_cpu_cores", sa.Double),
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
        sa.Column("input_cpu_seconds", sa.Double),
        sa.Column("all_reduce_seconds", sa.Double),
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


def _make_blocks(name: str) -> None:
    op.create_table(
        name,
        _key(),
        _owner("replica"),
        sa.Column("attempt", sa.Integer, nullable=False),
        sa.Column("first_at", sa.Double, nullable=False),
        sa.Column("last_at", sa.Double, nullable=False),
        sa.Column("measurements", sa.Integer, nullable=False),
        sa.Column("data", sa.LargeBinary, nullable=False),
    )
    op.create_index(f"{name}_by_replica", name, ["replica_id", "last_at"])


def _make_outcomes() -> None:
    op.create_table(
        "labels",
        _owner("run"),
        sa.Column("key", sa.Text, nullable=False),
        sa.Column("value", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("run_id", "key"),
    )
    op.create_index("labels_by_value", "labels", ["key", "value"])
    op.create_table(
        "diagnosis_summaries",
        _owner("run", primary_key=True),
        sa.Column("at", sa.Double, nullable=False),
        sa.Column("examples_per_second", sa.Double),
        sa.Column("trend", sa.Text, nullable=False),
        sa.Column("progress", sa.Double),
        sa.Column("eta_seconds", sa.Double),
        sa.Column("imbalance", sa.Double),
        sa.Column("code", sa.Text),
        sa.Column("severity", sa.Text),
        sa.Column("finding", sa.Text),
        sa.Column("used_cores", sa.Double),
        sa.Column("auc", sa.Double),
        sa.Column("log_loss", sa.Double),
        sa.Column("codes", sa.Text, nullable=False, server_default=""),
    )
    op.create_table(
        "conclusions",
        _owner("run", primary_key=True),
        sa.Column("at", sa.Double, nullable=False),
        sa.Column("version", sa.Text, nullable=False),
        sa.Column("explanation", sa.Text, nullable=False),
    )


def _make_changes() -> None:
    op.create_table(
        "submits",
        sa.Column("key", sa.Text, primary_key=True),
        _owner("run"),
        sa.Column("fingerprint", sa.Text, nullable=False),
    )
    op.create_index("submits_by_run", "submits", ["run_id"])
    op.create_table(
        "spec_changes",
        _key(),
        _owner("run"),
        sa.Column("asked_at", sa.Double, nullable=False),
        sa.Column("source", sa.LargeBinary, nullable=False),
        sa.Column("before", sa.LargeBinary, nullable=False),
        sa.Column("done_at", sa.Double),
        sqlite_autoincrement=True,
    )
    op.create_index("spec_changes_by_run", "spec_changes", ["run_id", "id"])


def _make_probes() -> None:
    op.create_table(
        "probes",
        _key(),
        _owner("run"),
        sa.Column("began_at", sa.Double, nullable=False),
        sa.Column("data", sa.Text, nullable=False),
        sa.UniqueConstraint("run_id", "began_at"),
        sqlite_autoincrement=True,
    )


def _make_studies_and_audits() -> None:
    op.create_table(
        "studies",
        sa.Column("name", sa.Text, primary_key=True),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("changed_at", sa.Double, nullable=False),
        sa.Column("data", sa.Text, nullable=False),
    )
    op.create_table(
        "audits",
        _key(),
        sa.Column("at", sa.Double, nullable=False),
        sa.Column("who", sa.Text, nullable=False),
        sa.Column("origin", sa.Text, nullable=False),
        sa.Column("action", sa.Text, nullable=False),
        sa.Column("job", sa.Text),
        sa.Column("namespace", sa.Text),
        sa.Column("scope", sa.Text, nullable=False, server_default=""),
        sa.Column("detail", sa.Text, nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_index("audits_by_job", "audits", ["job", "id"])


def _make_sessions() -> None:
    op.create_table(
        "sessions",
        sa.Column("name", sa.Text, primary_key=True),
        sa.Column("who", sa.Text, nullable=False),
        sa.Column("sealed", sa.LargeBinary, nullable=False),
        sa.Column("began_at", sa.Double, nullable=False),
        sa.Column("ends_at", sa.Double, nullable=False),
    )
    op.create_index("sessions_by_caller", "sessions", ["who", "began_at"])
