"""TCP segments in samples; older samples and step reports packed into blocks."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

from paceline.stores import blocks, tables

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

_NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
_SEGMENTS = ("sent_segments", "retransmitted_segments")
_BLOCK_ROWS = 600

#: By the kind of measurement: how many of the latest stay rows, and the columns that are packed.
_KINDS = {
    "sample": (
        15,
        (
            "at", "interval_seconds", "cpu_cores", "cpu_limit_cores", "throttled_seconds", "memory_bytes",
            "memory_limit_bytes", "network_received_bytes", "network_sent_bytes", "voluntary_switches",
            "involuntary_switches", "threads", "neighbours_cpu_cores", "gpu_utilization", "gpu_memory_bytes",
        ),
    ),
    "step_report": (
        30,
        (
            "at", "interval_seconds", "step", "steps", "examples", "loss", "input_wait_seconds",
            "total_steps",
        ),
    ),
}  # fmt: skip


def _rows(kind: str) -> sa.TableClause:
    names = ("id", "replica_id", "attempt", *_KINDS[kind][1])
    typed = {"loss": tables.Metric()}  # SQLite keeps NaN as a text
    return sa.table(f"{kind}s", *(sa.column(name, typed.get(name)) for name in names))


def _packed(kind: str, what: str = "blocks") -> sa.TableClause:
    names = ("id", "replica_id", "attempt", "first_at", "last_at", "measurements", "data")
    return sa.table(f"{kind}_{what}", *map(sa.column, names))


def upgrade() -> None:
    """Add the columns and the tables, and pack all but the latest measurements."""
    for name in _SEGMENTS:
        op.add_column("samples", sa.Column(name, sa.BigInteger))
    for kind in _KINDS:
        for name in (f"{kind}_pieces", f"{kind}_blocks"):
            _make(name)
        _pack(kind)


def _make(name: str) -> None:
    op.create_table(
        name,
        sa.Column("id", _NUMBER, primary_key=True),
        sa.Column("replica_id", _NUMBER, sa.ForeignKey("replicas.id", ondelete="CASCADE"), nullable=False),
        sa.Column("attempt", sa.Integer, nullable=False),
        sa.Column("first_at", sa.Double, nullable=False),
        sa.Column("last_at", sa.Double, nullable=False),
        sa.Column("measurements", sa.Integer, nullable=False),
        sa.Column("data", sa.LargeBinary, nullable=False),
    )
    op.create_index(f"{name}_by_replica", name, ["replica_id", "last_at"])


def _pack(kind: str) -> None:
    connection, rows = op.get_bind(), _rows(kind)
    owners = sa.select(rows.c.replica_id, rows.c.attempt).distinct()
    kept, names = _KINDS[kind]
    for replica, attempt in connection.execute(owners).all():
        mine = sa.and_(rows.c.replica_id == replica, rows.c.attempt == attempt)
        query = sa.select(rows.c.id, *(rows.c[name] for name in names)).where(mine)
        found = connection.execute(query.order_by(rows.c.at, rows.c.id)).all()[:-kept]
        for start in range(0, len(found), _BLOCK_ROWS):
            ids, *measured = zip(*found[start : start + _BLOCK_ROWS], strict=True)
            columns = dict(zip(names, measured, strict=True))
            first_at, last_at = blocks.bounds(columns)
            block = {
                "replica_id": replica,
                "attempt": attempt,
                "first_at": first_at,
                "last_at": last_at,
                "measurements": len(ids),
                "data": blocks.pack(columns),
            }
            connection.execute(sa.insert(_packed(kind)), [block])
            connection.execute(sa.delete(rows).where(rows.c.id.in_(ids)))


def downgrade() -> None:
    """Unpack all blocks; remove the tables and the columns."""
    for kind in _KINDS:
        for what in ("blocks", "pieces"):
            _unpack(kind, what)
            op.drop_table(f"{kind}_{what}")
    for name in reversed(_SEGMENTS):
        op.drop_column("samples", name)


def _unpack(kind: str, what: str) -> None:
    connection, table, rows = op.get_bind(), _packed(kind, what), _rows(kind)
    names = _KINDS[kind][1]
    for key in connection.scalars(sa.select(table.c.id)).all():
        block = connection.execute(sa.select(table).where(table.c.id == key)).one()
        columns = blocks.unpack(block.data)
        nothing = [None] * block.measurements
        made = zip(*(columns.get(name, nothing) for name in names), strict=True)
        owner = {"replica_id": block.replica_id, "attempt": block.attempt}
        values: list[dict[str, Any]] = [owner | dict(zip(names, each, strict=True)) for each in made]
        connection.execute(sa.insert(rows), values)
