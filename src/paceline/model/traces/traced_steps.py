"""A trace: what a few steps of one trainer moved and computed, by variable and parameter server.

A step is one run of the session; it comprises all steps that share an exchange (``steps_per_exchange``).
Processes have the names ``worker-0`` and ``ps-1``, as everywhere in Paceline. None means "not measured",
never 0; a variable of None means that the trace does not say which variable a message or an operation
belongs to.
"""

from __future__ import annotations

import dataclasses
import datetime
import enum
import re

from paceline.model.instants import UnixSeconds

#: A folder in the folder of a run. It has a folder for each moment of tracing, with a file for each trainer
#: and attempt.
FOLDER = "traces"
#: A file in the folder of a run: the variables whose traffic a trainer has counted.
VARIABLES = "variables.json"
#: Suffixes of trace files: Parquet is written by the training library, ``.zip`` is TensorFlow's data of a
#: step of a trainer, and ``.profile`` is what its profiler saw in the process of any replica.
GIVEN, PROFILE = ".zip", ".profile"
SUFFIXES = (".parquet", GIVEN, PROFILE)
#: A file in `FOLDER`: the request for a trace (``request_text``).
REQUEST = "request"
_TIME = "%Y-%m-%dT%H-%M-%S.%fZ"
_NAME = re.compile(r"\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d\.\d{3}Z")


def name_at(at: float) -> str:
    """Return the name of the traces of a moment (Unix seconds); names sort by time."""
    moment = datetime.datetime.fromtimestamp(at, datetime.UTC)
    return f"{moment:%Y-%m-%dT%H-%M-%S}.{moment.microsecond // 1000:03d}Z"


def at_name(name: str) -> float:
    """Return the moment of a trace (Unix seconds) from its name.

    Raises:
        ValueError: it is not the name of a trace.
    """
    return datetime.datetime.strptime(f"{name}+0000", _TIME + "%z").timestamp()


def is_name(text: str) -> bool:
    """Whether a text is the name of a trace."""
    return _NAME.fullmatch(text) is not None


@dataclasses.dataclass(frozen=True, slots=True)
class Window:
    """The time in which the servers of all replicas are profiled, all at once, so that steps match.

    Attributes:
        at: the start (Unix seconds).
        milliseconds: the length.
    """

    at: float
    milliseconds: int


def request_text(name: str, window: Window | None = None) -> str:
    """Return the text of a request for a trace.

    Trainers trace a step of their session. With a window, agents also have the servers of their replicas
    profiled.
    """
    return name if window is None else f"{name} profile {window.milliseconds} {window.at:.3f}"


class Direction(enum.StrEnum):
    """The direction, and thereby the content, of a message between a trainer and a parameter server."""

    PULL = "pull"
    PUSH = "push"
    IDS = "ids"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Transfer:
    """The traffic of a step for a shard of a variable in one direction.

    Attributes:
        step: counted from 1 by the trainer, in this attempt.
        server: the parameter server, such as ``ps-0``.
        direction: pull, push or ids.
        variable: the name that the user's script gives it.
        shard: the number of the shard; None: the variable is not cut.
        bytes: its part of the messages; None: not measured.
        microseconds: its part of their transfer time, in proportion to the bytes; None: not measured.
    """

    step: int
    server: str
    direction: Direction
    variable: str | None
    shard: int | None
    bytes: int | None
    microseconds: float | None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """The computing of a step on a parameter server for a shard of a variable, by kind of operation.

    The variable is None if an operation serves several, such as an operation that joins a message.
    """

    step: int
    server: str
    kind: str
    variable: str | None
    shard: int | None
    calls: int
    microseconds: float


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """How the time of a step was spent on its trainer.

    Compute is the time in which any operation runs on the trainer. In the remaining time, pull is while
    values or their ids are on the way, and push while gradients are on the way or being applied. Other is the
    rest between the step's first and last event.
    """

    step: int
    start_at: UnixSeconds
    input_wait_microseconds: float | None
    pull_microseconds: float
    compute_microseconds: float
    push_microseconds: float
    other_microseconds: float

    @property
    def total_microseconds(self) -> float:
        """Return the length of the step, including its wait for input if that is known."""
        return (
            (self.input_wait_microseconds or 0.0)
            + self.pull_microseconds
            + self.compute_microseconds
            + self.push_microseconds
            + self.other_microseconds
        )


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """An operation, or a message on its way, on the clock of the trainer.

    Attributes:
        step: as in ``Transfer``.
        process: the process in which an operation runs, or which receives a message.
        name: the name of the operation, or of the tensor that is sent.
        kind: the type of the operation; ``RecvTensor`` for a message.
        sender: the process that sends a message; None for an operation.
        bytes: the size of a message, or of the output of an operation; None: not measured.
        start_microseconds: the start, in Unix time.
        microseconds: the duration.
    """

    step: int
    process: str
    name: str
    kind: str
    sender: str | None
    bytes: int | None
    start_microseconds: float
    microseconds: float


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ClockOffset:
    """How far the clock of a process is ahead of the trainer's.

    The offset is already subtracted from the events. It is exact to ``uncertainty_microseconds`` either way.
    """

    process: str
    offset_microseconds: float
    uncertainty_microseconds: float


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """A few steps of one trainer.

    Attributes:
        trainer: the replica, such as ``worker-0``.
        attempt: the attempt of the replica.
        at: the time of the first step (Unix seconds).
        untraced_step_microseconds: the median length of untraced steps around it, to see what tracing adds;
            None: there were none.
        splits: one for each step.
        transfers: sorted by step, server, direction and variable.
        operations: sorted likewise.
        events: sorted by their start.
        clocks: the clock offsets of the other processes.
    """

    trainer: str
    attempt: int
    at: float
    untraced_step_microseconds: float | None = None
    splits: tuple[Split, ...] = ()
    transfers: tuple[Transfer, ...] = ()
    operations: tuple[Operation, ...] = ()
    events: tuple[Event, ...] = ()
    clocks: tuple[ClockOffset, ...] = ()
