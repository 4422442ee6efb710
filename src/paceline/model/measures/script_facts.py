"""Named facts of what a script asks of TensorFlow: ``device_filters: no``, ``recovery_wait_seconds: 30``.

The instrumentation sees the facts, the agent passes them on, and the store keeps them as events with a text.
"""

from __future__ import annotations

import dataclasses
import enum
import math
from collections.abc import Iterable, Mapping
from typing import TypeGuard

from paceline.model.jobs.runs import FACT, JobEvent, ReplicaRow
from paceline.model.roles import ReplicaId

Value = bool | float | str

_FLAGS = {True: "yes", False: "no"}
_MOST_CHARACTERS = 200
#: Amounts from this one on are written without decimals, smaller ones with four digits in all.
_WHOLE = 1000


class Name(enum.StrEnum):
    """The known facts; a fact with another name is not kept."""

    DEVICE_FILTERS = "device_filters"
    RECOVERY_WAIT_SECONDS = "recovery_wait_seconds"
    SESSION_WAIT_SECONDS = "session_wait_seconds"
    LOG_DEVICE_PLACEMENT = "log_device_placement"
    CHECKPOINT_EVERY_SECONDS = "checkpoint_every_seconds"
    CHECKPOINT_SHARE = "checkpoint_share"
    SUMMARY_EVERY_STEPS = "summary_every_steps"
    SUMMARY_BYTES = "summary_bytes"
    REPLICAS_TO_AGGREGATE = "replicas_to_aggregate"
    TOTAL_REPLICAS = "total_replicas"
    FEEDS_BYTES_PER_STEP = "feeds_bytes_per_step"
    READS_BYTES_PER_STEP = "reads_bytes_per_step"
    PYTHON_SHARE = "python_share"
    PREFETCHES = "prefetches"
    GLOBAL_STEP_DEVICE = "global_step_device"
    ONE_HOT_TABLE = "one_hot_table"
    COORDINATES = "coordinates"
    MODEL_FIT = "model_fit"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """The value of a fact, and when it was seen (Unix seconds)."""

    value: Value
    at: float


Facts = Mapping[Name, Fact]

_TYPES: Mapping[Name, type[bool | float | str]] = {
    Name.DEVICE_FILTERS: bool,
    Name.RECOVERY_WAIT_SECONDS: float,
    Name.SESSION_WAIT_SECONDS: float,
    Name.LOG_DEVICE_PLACEMENT: bool,
    Name.CHECKPOINT_EVERY_SECONDS: float,
    Name.CHECKPOINT_SHARE: float,
    Name.SUMMARY_EVERY_STEPS: float,
    Name.SUMMARY_BYTES: float,
    Name.REPLICAS_TO_AGGREGATE: float,
    Name.TOTAL_REPLICAS: float,
    Name.FEEDS_BYTES_PER_STEP: float,
    Name.READS_BYTES_PER_STEP: float,
    Name.PYTHON_SHARE: float,
    Name.PREFETCHES: bool,
    Name.GLOBAL_STEP_DEVICE: str,
    Name.ONE_HOT_TABLE: str,
    Name.COORDINATES: bool,
    Name.MODEL_FIT: bool,
}


def text(name: object, value: object) -> str:
    """Return the text of a fact, which users and `of_text` read.

    Args:
        name: the name of the fact.
        value: a JSON value: a flag, a finite number of at least 0, or a single line of text.

    Raises:
        ValueError: the fact is unknown, or it cannot have this value.
    """
    known = Name(str(name))
    wanted = _TYPES[known]
    if wanted is bool and isinstance(value, bool):
        return f"{known}: {_FLAGS[value]}"
    if wanted is float and _is_amount(value):
        return f"{known}: {value:.0f}" if value >= _WHOLE else f"{known}: {value:.4g}"
    if wanted is str and isinstance(value, str) and value.isprintable() and 0 < len(value) < _MOST_CHARACTERS:
        return f"{known}: {value}"
    raise ValueError(f"{known} is no {wanted.__name__}")


def _is_amount(value: object) -> TypeGuard[float]:
    return (
        isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) and value >= 0
    )


def of_text(text: str) -> tuple[Name, Value] | None:
    """Return the name and the value of a fact; None: the text is no fact, or of another version."""
    name, _, value = text.partition(": ")
    try:
        known = Name(name)
        if _TYPES[known] is bool:
            return known, {said: flag for flag, said in _FLAGS.items()}[value]
        return known, float(value) if _TYPES[known] is float else value
    except (ValueError, KeyError):
        return None


def of_replicas(replicas: Iterable[ReplicaRow], events: Iterable[JobEvent]) -> dict[ReplicaId, Facts]:
    """Return the facts of each replica's script at its latest attempt; the last of several values counts."""
    attempts = {row.replica: row.attempt for row in replicas}
    found: dict[ReplicaId, dict[Name, Fact]] = {}
    for event in events:
        if event.kind != FACT or event.replica is None or event.attempt != attempts.get(event.replica):
            continue
        known = of_text(event.message)
        if known is not None:
            found.setdefault(event.replica, {})[known[0]] = Fact(value=known[1], at=event.at)
    return {replica: found[replica] for replica in sorted(found)}
