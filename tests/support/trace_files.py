"""Traces made by hand, as trainers leave them in the folder of a run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from paceline.model.traces import traced_steps
from paceline.model.traces.traced_steps import (
    ClockOffset,
    Direction,
    Event,
    Operation,
    Split,
    Trace,
    Transfer,
)
from paceline.training.tracing import trace_files

LONG = "deep/" + "a_very_long_name_of_a_layer/" * 4 + "kernel"
NAME = traced_steps.name_at(1e9)


def transfer(variable: str, shard: int | None, server: str, direction: Direction, size: int) -> Transfer:
    return Transfer(
        step=1, server=server, direction=direction, variable=variable, shard=shard, bytes=size,
        microseconds=size / 10,
    )  # fmt: skip


def trace(trainer: str, *, ahead: float = 0.0, offset: float = 0.0) -> Trace:
    """A step whose trainer's clock is ahead of the others' by so many microseconds."""
    event: dict[str, Any] = {"step": 1, "bytes": 640, "microseconds": 50.0}
    return Trace(
        trainer=trainer, attempt=1, at=1e9, untraced_step_microseconds=900.0,
        splits=(
            Split(
                step=1, start_at=1e9, input_wait_microseconds=None, pull_microseconds=1000.0,
                compute_microseconds=2500.0, push_microseconds=500.0, other_microseconds=250.0,
            ),
        ),
        transfers=(
            transfer("deep/vectors", 1, "ps-1", Direction.PULL, 200_000),
            transfer("deep/vectors", 1, "ps-1", Direction.PUSH, 150_000),
            transfer("deep/vectors", 1, "ps-1", Direction.IDS, 9_000),
            transfer(LONG, None, "ps-0", Direction.PULL, 1_000),
            *(transfer(f"weight{place}", None, "ps-0", Direction.PULL, 10) for place in range(20)),
        ),
        operations=(
            Operation(
                step=1, server="ps-1", kind="ResourceSparseApplyAdagrad", variable="deep/vectors", shard=1,
                calls=1, microseconds=3000.0,
            ),
            Operation(
                step=1, server="ps-1", kind="ConcatV2", variable=None, shard=None, calls=1, microseconds=4.0
            ),
        ),
        events=(
            Event(process=trainer, name="MatMul", kind="MatMul", sender=None,
                  start_microseconds=1e15 + ahead, **event),
            Event(process=trainer, name="Relu", kind="Relu", sender=None,
                  start_microseconds=1e15 + ahead + 10, **event),
            Event(process="ps-1", name="grads", kind="RecvTensor", sender=trainer,
                  start_microseconds=1e15 + ahead + 60, **event),
        ),
        clocks=(ClockOffset(process="ps-1", offset_microseconds=offset, uncertainty_microseconds=3.0),),
    )  # fmt: skip


def write(directory: str | Path, found: Trace, name: str = NAME) -> None:
    trace_files.write(found, Path(directory) / traced_steps.FOLDER / name / f"{found.trainer}.1.parquet")
