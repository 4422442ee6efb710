"""The tables of the database. The migrations create them, and a test compares both.

Measurements are most of the data: 220 replicas give 792,000 samples an hour. A measurement therefore has the
number of its replica's row instead of names. It has one index, ``(replica_id, at)``, which serves both the
latest measurement of a replica and a range of time. Columns of measurements have the names of the fields in
``paceline.model.measures.samples``. Times are Unix seconds. Only the latest samples and step reports of a
replica are individual rows; the others are in blocks (see `packings`).

The long texts of a run are at the end of its row, so listing runs does not read their overflow pages.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from typing import Any

import sqlalchemy as sa

from paceline.model import columns
from paceline.model.measures.gauges import gauges
from paceline.model.measures.samples import Sample, StepReport

_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")

#: 64 bits everywhere. SQLite numbers rows automatically only if the type is spelt INTEGER.
Number = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


class Text(sa.types.TypeDecorator[str]):
    """Readable text; characters that no database stores (NUL, lone surrogates) become U+FFFD."""

    impl = sa.Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: sa.Dialect) -> str | None:
        """Return the text in the form that is stored."""
        return None if value is None else _UNSTORABLE.sub("\ufffd", value)


class MetricType(sa.Double[float]):
    """A number that a training script reports; NaN is preserved, which SQLite itself would turn into NULL."""

    def bind_processor(self, dialect: sa.Dialect) -> Callable[[float | None], Any] | None:
        """Return the function that makes a number storable; None if the database needs none."""
        return _storable if dialect.name == "sqlite" else None

    def result_processor(self, dialect: sa.Dialect, coltype: Any) -> Callable[[Any], float | None] | None:
        """Return the function that turns a stored value back into a number; None if none is needed."""
        return _number if dialect.name == "sqlite" else None


def _storable(value: float | None) -> float | str | None:
    return "NaN" if value is not None and math.isnan(value) else value


def _number(stored: float | str | None) -> float | None:
    return None if stored is None else float(stored)


metadata = sa.MetaData()


def _owner(table: str) -> sa.Column[int]:
    """Return the foreign key to the owner of a row; deleting the owner deletes the row."""
    target = sa.ForeignKey(f"{table}s.id", ondelete="CASCADE")
    return sa.Column(f"{table}_id", Number, target, nullable=False)


runs = sa.Table(
    "runs",
    metadata,
    sa.Column("id", Number, primary_key=True),
    sa.Column("name", Text, nullable=False, unique=True),
    sa.Column("engine", Text, nullable=False),
    sa.Column("directory", Text, nullable=False),
    sa.Column("submitted_at", sa.Double, nullable=False),
    sa.Column("phase", Text, nullable=False),
    sa.Column("started_at", sa.Double),
    sa.Column("finished_at", sa.Double),
    sa.Column("ttl_after_finished_seconds", sa.Double),
    sa.Column("replicas", Text, nullable=False),  # running and wanted replicas of each role, for lists
    sa.Column("message", Text, nullable=False),
    sa.Column("labels", sa.Text, nullable=False),  # JSON
    sa.Column("notes", sa.Text, nullable=False),  # JSON
    sa.Column("source", sa.LargeBinary, nullable=False),
    sa.Column("spec", sa.Text, nullable=False),  # JSON
    sa.Column("state", sa.Text, nullable=False),  # JSON
    sa.Column("model", Text, nullable=False, server_default=""),
    sa.Column("detail", Text, nullable=False, server_default="full"),
    sa.Index("runs_by_submitted_at", "submitted_at"),
    sa.Index("runs_by_engine", "engine", "submitted_at", "name"),
    sa.Index("runs_by_phase", "phase"),
    sa.Index("runs_by_model", "model", "submitted_at"),
    sqlite_autoincrement=True,
)

replicas = sa.Table(
    "replicas",
    metadata,
    sa.Column("id", Number, primary_key=True),
    _owner("run"),
    sa.Column("role", Text, nullable=False),
    sa.Column("number", sa.Integer, nullable=False),  # the index within the role
    sa.Column("phase", Text, nullable=False),
    sa.Column("attempt", sa.Integer, nullable=False),
    sa.Column("restarts", sa.Integer, nullable=False),
    sa.Column("memory_bytes", sa.BigInteger),
    sa.Column("exit", sa.Text),  # JSON
    sa.Column("host", Text),
    sa.Column("address", Text),
    sa.Column("pid", sa.BigInteger),
    sa.Column("cores", sa.Text, nullable=False, server_default="[]"),  # JSON
    sa.UniqueConstraint("run_id", "role", "number", name="replicas_by_run"),
    sqlite_autoincrement=True,
)

spools = sa.Table(
    "spools",
    metadata,
    _owner("replica"),
    sa.Column("attempt", sa.Integer, nullable=False),
    sa.Column("position", sa.BigInteger, nullable=False),  # how many bytes of the spool are stored
    sa.PrimaryKeyConstraint("replica_id", "attempt"),
)

events = sa.Table(
    "events",
    metadata,
    sa.Column("id", Number, primary_key=True),
    _owner("run"),
    sa.Column("at", sa.Double, nullable=False),
    sa.Column("kind", Text, nullable=False),
    sa.Column("message", Text, nullable=False),
    sa.Column("replica", Text),
    sa.Column("attempt", sa.Integer),
    sa.Index("events_by_run", "run_id", "id"),
    sqlite_autoincrement=True,
)

requests = sa.Table(
    "requests",
    metadata,
    sa.Column("id", Number, primary_key=True),
    _owner("run"),
    sa.Column("kind", Text, nullable=False),
    sa.Column("at", sa.Double, nullable=False),
    sa.Index("requests_by_run", "run_id", "id"),
    sqlite_autoincrement=True,
)


def _gauges(kind: type) -> Iterator[sa.Column[Any]]:
    """Yield a column for each gauge; a gauge that every measurement has is not null."""
    known = gauges(kind)
    for name, (of, is_optional) in columns.fields(kind).items():
        if name in known:
            number = MetricType if name == "loss" else sa.Double if of is float else sa.BigInteger
            yield sa.Column(name, number, nullable=is_optional)


samples = sa.Table(
    "samples",
    metadata,
    sa.Column("id", Number, primary_key=True),
    _owner("replica"),
    sa.Column("attempt", sa.Integer, nullable=False),
    *_gauges(Sample),
    sa.Index("samples_by_replica", "replica_id", "at"),
)


def _blocks(name: str) -> sa.Table:
    """Return a table of packed measurements (see `blocks`); a row has many of one replica and attempt."""
    return sa.Table(
        name,
        metadata,
        sa.Column("id", Number, primary_key=True),
        _owner("replica"),
        sa.Column("attempt", sa.Integer, nullable=False),
        sa.Column("first_at", sa.Double, nullable=False),
        sa.Column("last_at", sa.Double, nullable=False),
        sa.Column("measurements", sa.Integer, nullable=False),  # how many
        sa.Column("data", sa.LargeBinary, nullable=False),
        sa.Index(f"{name}_by_replica", "replica_id", "last_at"),
    )


sample_pieces = _blocks("sample_pieces")
sample_blocks = _blocks("sample_blocks")
step_report_pieces = _blocks("step_report_pieces")
step_report_blocks = _blocks("step_report_blocks")

step_reports = sa.Table(
    "step_reports",
    metadata,
    sa.Column("id", Number, primary_key=True),
    _owner("replica"),
    sa.Column("attempt", sa.Integer, nullable=False),
    *_gauges(StepReport),
    sa.Index("step_reports_by_replica", "replica_id", "at"),
)

evaluations = sa.Table(
    "evaluations",
    metadata,
    sa.Column("id", Number, primary_key=True),
    _owner("replica"),
    sa.Column("attempt", sa.Integer, nullable=False),
    sa.Column("at", sa.Double, nullable=False),
    sa.Column("step", sa.BigInteger),
    sa.Column("examples", sa.BigInteger),
    sa.Column("auc", MetricType),
    sa.Column("log_loss", MetricType),
    sa.Column("accuracy", MetricType),
    sa.Index("evaluations_by_replica", "replica_id", "at"),
)

studies = sa.Table(
    "studies",
    metadata,
    sa.Column("name", Text, primary_key=True),
    sa.Column("kind", Text, nullable=False),
    sa.Column("changed_at", sa.Double, nullable=False),
    sa.Column("data", sa.Text, nullable=False),  # JSON
)

labels = sa.Table(
    "labels",
    metadata,
    _owner("run"),
    sa.Column("key", Text, nullable=False),
    sa.Column("value", Text, nullable=False),
    sa.PrimaryKeyConstraint("run_id", "key"),
    sa.Index("labels_by_value", "key", "value"),
)

diagnosis_summaries = sa.Table(
    "diagnosis_summaries",
    metadata,
    sa.Column(
        "run_id", Number, sa.ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True, nullable=False
    ),
    sa.Column("at", sa.Double, nullable=False),
    sa.Column("examples_per_second", sa.Double),
    sa.Column("trend", sa.Text, nullable=False),  # JSON
    sa.Column("progress", sa.Double),
    sa.Column("eta_seconds", sa.Double),
    sa.Column("imbalance", sa.Double),
    sa.Column("code", Text),
    sa.Column("severity", Text),
    sa.Column("finding", Text),
    sa.Column("used_cores", sa.Double),
    sa.Column("auc", MetricType),
    sa.Column("log_loss", MetricType),
    sa.Column("codes", Text, nullable=False, server_default=""),  # separated by spaces
)

conclusions = sa.Table(
    "conclusions",
    metadata,
    sa.Column(
        "run_id", Number, sa.ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True, nullable=False
    ),
    sa.Column("at", sa.Double, nullable=False),
    sa.Column("version", Text, nullable=False),
    sa.Column("explanation", sa.Text, nullable=False),  # JSON
)

submits = sa.Table(
    "submits",
    metadata,
    sa.Column("key", Text, primary_key=True),
    _owner("run"),
    sa.Column("fingerprint", Text, nullable=False),
    sa.Index("submits_by_run", "run_id"),
)

spec_changes = sa.Table(
    "spec_changes",
    metadata,
    sa.Column("id", Number, primary_key=True),
    _owner("run"),
    sa.Column("asked_at", sa.Double, nullable=False),
    sa.Column("source", sa.LargeBinary, nullable=False),
    sa.Column("before", sa.LargeBinary, nullable=False),
    sa.Column("done_at", sa.Double),
    sa.Index("spec_changes_by_run", "run_id", "id"),
    sqlite_autoincrement=True,
)

probes = sa.Table(
    "probes",
    metadata,
    sa.Column("id", Number, primary_key=True),
    _owner("run"),
    sa.Column("began_at", sa.Double, nullable=False),
    sa.Column("data", Text, nullable=False),
    sa.UniqueConstraint("run_id", "began_at"),
    sqlite_autoincrement=True,
)

audits = sa.Table(
    "audits",
    metadata,
    sa.Column("id", Number, primary_key=True),
    sa.Column("at", sa.Double, nullable=False),
    sa.Column("who", Text, nullable=False),
    sa.Column("origin", Text, nullable=False),
    sa.Column("action", Text, nullable=False),
    sa.Column("job", Text),
    sa.Column("namespace", Text),
    sa.Column("scope", Text, nullable=False),
    sa.Column("detail", Text, nullable=False),
    sa.Index("audits_by_job", "job", "id"),
    sqlite_autoincrement=True,
)

sessions = sa.Table(
    "sessions",
    metadata,
    sa.Column("name", Text, primary_key=True),
    sa.Column("who", Text, nullable=False),
    sa.Column("sealed", sa.LargeBinary, nullable=False),
    sa.Column("began_at", sa.Double, nullable=False),
    sa.Column("ends_at", sa.Double, nullable=False),
    sa.Index("sessions_by_caller", "who", "began_at"),
)
