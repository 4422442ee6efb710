"""A trace: what a few steps of one trainer moved and did, by variable and parameter server.

A step is one run of the session: where steps share an exchange (``steps_per_exchange``), all of them. Names
of processes are ``worker-0`` and ``ps-1``, as everywhere in Paceline. None means "not measured", never 0; as
a variable it means that the trace does not say to which one a message or an operation belongs.
"""

from __future__ import annotations

import dataclasses
import datetime
import enum
import re

#: In the folder of a run: one folder for each moment of tracing, in it a file for each trainer and attempt.
FOLDER = "traces"
#: In the folder of a run: the variables that a trainer has counted the traffic of.
VARIABLES = "variables.json"
#: Of the files of traces: Parquet of the training library, what TensorFlow gave of a step of a trainer, and
#: what its profiler saw in the process of any replica.
GIVEN, PROFILE = ".zip", ".profile"
SUFFIXES = (".parquet", GIVEN, PROFILE)
#: In that folder: what is asked for (``request_text``).
REQUEST = "request"
_TIME = "%Y-%m-%dT%H-%M-%S.%fZ"
_NAME = re.compile(r"\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d\.\d{3}Z")


def name_at(at: float) -> str:
    """Return the name of what is traced at a moment (Unix seconds); names sort by time."""
    moment = datetime.datetime.fromtimestamp(at, datetime.UTC)
    return f"{moment:%Y-%m-%dT%H-%M-%S}.{moment.microsecond // 1000:03d}Z"


def at_name(name: str) -> float:
    """Return the moment of a trace (Unix seconds).

    Raises:
        ValueError: that is no name of one.
    """
    return datetime.datetime.strptime(f"{name}+0000", _TIME + "%z").timestamp()


def is_name(text: str) -> bool:
    """Whether a text is such a name."""
    return _NAME.fullmatch(text) is not None


@dataclasses.dataclass(frozen=True, slots=True)
class Window:
    """When the servers of all replicas are profiled, for so long: at the same time, lest steps fall apart.

    Attributes:
        at: Unix seconds.
        milliseconds: how long.
    """

    at: float
    milliseconds: int


def request_text(name: str, window: Window | None = None) -> str:
    """Return how a trace is asked for: of trainers, which trace a step of their session; with a window of
    agents, too, which have the servers of their replicas profiled.
    """
    return name if window is None else f"{name} profile {window.milliseconds} {window.at:.3f}"


class Direction(enum.StrEnum):
    """What a message between a trainer and a parameter server carries."""

    PULL = "pull"
    PUSH = "push"
    IDS = "ids"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Transfer:
    """What a step moved of a shard of a variable in one direction.

    Attributes:
        step: counted from 1 by the trainer, in this attempt.
        server: the parameter server, such as ``ps-0``.
        direction: pull, push or ids.
        variable: the user's name of it.
        shard: its number; None for a variable that is whole.
        bytes: its part of the messages; None: not measured.
        microseconds: its part of their time on the way, in proportion to the bytes; None: not measured.
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
    """What a step computed on a parameter server for a shard of a variable, by kind of operation.

    The variable is None where an operation serves several, as an operation that joins a message does.
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
    """Where the time of a step went, on its trainer; ``start_at`` is in Unix seconds.

    Compute is while any operation runs on the trainer; pull and push are while none does and values or their
    ids come, or gradients go and are applied; other is the rest between the step's first and last event.
    """

    step: int
    start_at: float
    input_wait_microseconds: float | None
    pull_microseconds: float
    compute_microseconds: float
    push_microseconds: float
    other_microseconds: float

    @property
    def total_microseconds(self) -> float:
        """Return the length of the step, its wait for input included as far as that is known."""
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
        process: where it runs; for a message who receives it.
        name: of the operation, or of the tensor that is sent.
        kind: of the operation; ``RecvTensor`` for a message.
        sender: of a message; None for an operation.
        bytes: of a message or of what an operation gives; None where it is not measured.
        start_microseconds: Unix time.
        microseconds: how long.
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
    """By how much the clock of a process is ahead of the trainer's.

    It was taken off the events, and lies within ``uncertainty_microseconds`` to either side.
    """

    process: str
    offset_microseconds: float
    uncertainty_microseconds: float


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """A few steps of one trainer.

    Attributes:
        trainer: the replica, such as ``worker-0``.
        attempt: its launch.
        at: Unix seconds of the first step.
        untraced_step_microseconds: the median of untraced steps around it, to see what tracing adds; None:
            there were none.
        splits: one for each step.
        transfers: sorted by step, server, direction and variable.
        operations: likewise.
        events: by their start.
        clocks: of the other processes.
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
