"""What the processes of a cluster did while they were profiled (`XSpace` messages): pure.

Operations ran, tensors were sent to other processes, and were there. Of old versions (2.15 seen) a profile
does not say when it began: then clocks are told apart by what was sent in a run (`clock_offsets`). Of still
older ones (2.11 seen) it says neither to whom a tensor was sent nor when it was there: then the receiver is
the process that has the other end of it.

Source: `xplane.proto`; `executor.cc` (runs), `rendezvous.cc` (keys of what is sent).
"""

from __future__ import annotations

import bisect
import collections
import dataclasses
import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from paceline.tracing import clock_offsets, dataflows

SERVER = "/job:ps/"
"""Tasks of parameter servers begin so."""
RECEIVES = {"_Recv", "_HostRecv"}
"""The kinds of operations that receive."""

_HOST, _TASK = "/host:CPU", "Task Environment"
_RUN = "ExecutorState::Process"
_DONE, _SEND = f"{_RUN}Async::Done", "_Send"


@dataclass(frozen=True)
class ProfiledOperation:
    """An operation that ran; microseconds, Unix time."""

    run: int
    name: str
    kind: str
    start: float
    microseconds: float
    shapes: str = ""


@dataclass(frozen=True)
class Sent:
    """A tensor that was sent by the node `name`; an empty receiver is not known."""

    run: int
    name: str
    maker: str
    taker: str
    receiver: str
    start: float


@dataclass
class Process:
    """What one process did; `arrivals` are times by run and receiving node. Unless it `is_dated`, its times
    begin at another moment than those of other processes.
    """

    operations: list[ProfiledOperation] = field(default_factory=list)
    sent: list[Sent] = field(default_factory=list)
    arrivals: dict[tuple[int, str], list[float]] = field(
        default_factory=lambda: collections.defaultdict(list)
    )
    is_dated: bool = True

    @functools.cached_property
    def runs_of(self) -> Mapping[str, Sequence[ProfiledOperation]]:
        """Each operation as often as it ran, by its start."""
        found: dict[str, list[ProfiledOperation]] = collections.defaultdict(list)
        for each in sorted(self.operations, key=_start):
            found[each.name].append(each)
        return found

    def first(self, name: str, at: float) -> ProfiledOperation | None:
        """The first run of an operation from a time on."""
        runs = self.runs_of.get(name, ())
        place = bisect.bisect_left(runs, at, key=_start)
        return runs[place] if place < len(runs) else None

    def last(self, name: str, at: float) -> ProfiledOperation | None:
        """The last run of an operation until a time."""
        runs = self.runs_of.get(name, ())
        place = bisect.bisect_right(runs, at, key=_start)
        return runs[place - 1] if place else None


def _start(operation: ProfiledOperation) -> float:
    return operation.start


def read(profiles: Mapping[str, Any], at: float) -> dict[str, Process]:
    """Reads profiles of one moment, by task. They were taken `at` some time (Unix seconds), which matters to
    those that do not say it.
    """
    processes = {task: _process(space, int(at * 1e9)) for task, space in profiles.items()}
    _address(processes)
    return processes


def aligned(processes: Mapping[str, Process], worker: str) -> dict[str, Process]:
    """Returns processes with times by a worker's clock, where their profiles do not say when they began."""
    return {
        task: process
        if process.is_dated or task == worker
        else _shifted(process, _offset(processes[worker], worker, process, task))
        for task, process in processes.items()
    }


def _process(space: Any, began: int) -> Process:
    planes = {plane.name: plane for plane in space.planes}
    process = Process(is_dated=_TASK in planes)
    if process.is_dated:
        began = _stats(planes[_TASK], planes[_TASK])["profile_start_time"]
    if _HOST in planes:
        for line in planes[_HOST].lines:
            _read_line(process, planes[_HOST], line, began + line.timestamp_ns)
    for times in process.arrivals.values():
        times.sort()
    return process


def _read_line(process: Process, plane: Any, line: Any, began_nanoseconds: int) -> None:
    """Reads what a thread did: operations run within the processing of a run."""
    run, until = 0, 0.0
    for event in sorted(line.events, key=lambda each: (each.offset_ps, -each.duration_ps)):
        described = plane.event_metadata[event.metadata_id]
        name, kind = described.name, described.display_name
        start, microseconds = began_nanoseconds / 1e3 + event.offset_ps / 1e6, event.duration_ps / 1e6
        if name == _RUN:
            run, until = _stats(plane, event)["id"], start + microseconds
        elif name == _DONE:
            stats = _stats(plane, event)
            if stats["kernel_type"] in RECEIVES:
                process.arrivals[stats["step_id"], stats["name"]].append(start)
        elif kind == _SEND:
            stats = _stats(plane, event)
            receiver = dataflows.task(stats["key"].split(";")[2]) if "key" in stats else ""
            node = name.removesuffix(f":{_SEND}")
            process.sent.append(Sent(run, node, stats["from"], stats["to"], receiver, start))
        elif kind and name.endswith(f":{kind}") and start <= until:
            taken = str(_stats(plane, event).get("shape", ""))
            process.operations.append(
                ProfiledOperation(run, name[: -len(kind) - 1], kind, start, microseconds, taken)
            )
        elif "::DoCompute" in name:
            kind = name.removesuffix("Op::DoCompute")
            # By a name of its own: some versions have the node that it works for, too.
            process.operations.append(
                ProfiledOperation(_stats(plane, event)["id"], name, kind, start, microseconds)
            )


def _stats(plane: Any, described: Any) -> dict[str, Any]:
    found = {}
    for stat in described.stats:
        which = stat.WhichOneof("value")
        value = getattr(stat, which)
        found[plane.stat_metadata[stat.metadata_id].name] = (
            plane.stat_metadata[value].name if which == "ref_value" else value
        )
    return found


def _address(processes: Mapping[str, Process]) -> None:
    """Finds the receivers that are not known: they have the other end of what was sent."""
    ends = {
        (each.run, each.name): task
        for task, process in processes.items()
        for each in process.operations
        if each.kind in RECEIVES
    }
    for process in processes.values():
        process.sent = [
            each
            if each.receiver
            else dataclasses.replace(each, receiver=ends.get((each.run, other_end(each)), ""))
            for each in process.sent
        ]


def other_end(sent: Sent) -> str:
    """The node that receives has the number after the sender's (`graph_partition.cc`)."""
    name, _, number = sent.name.rpartition("/_")
    return f"{name}/_{int(number) + 1}" if number.isdecimal() else ""


def _offset(worker: Process, trainer: str, process: Process, server: str) -> float:
    """By how many microseconds the clock of a server is ahead of the worker's; 0 if nothing tells."""
    most, least = _delays(worker, process, server), _delays(process, worker, trainer)
    if not most or not least:
        return 0.0
    return clock_offsets.estimate(-min(least), min(most)).microseconds


def _delays(sender: Process, receiver: Process, task: str) -> list[float]:
    """The microseconds between what was sent to a task and what took it, by the clock of each.

    Runs that began before the profile or went on after it may lack either, so the first and the last do not
    count; what is sent at the end of a loop, dead, has none that takes it.
    """
    begun: dict[int, float] = {}
    sent: dict[tuple[int, str, str], list[float]] = collections.defaultdict(list)
    for each in sorted(sender.sent, key=lambda each: each.start):
        if each.receiver == task:
            begun.setdefault(each.run, each.start)
            sent[each.run, each.maker, each.taker].append(each.start)
    whole = set(sorted(begun, key=lambda run: begun[run])[1:-1])
    taken: dict[tuple[int, str], list[float]] = collections.defaultdict(list)
    for operation in sorted(receiver.operations, key=_start):
        taken[operation.run, operation.name].append(operation.start)
    return [
        end - start
        for (run, _, taker), starts in sent.items()
        if run in whole and 0 <= len(starts) - len(taken[run, taker]) <= 1
        for start, end in zip(starts, taken[run, taker], strict=False)
    ]


def _shifted(process: Process, microseconds: float) -> Process:
    """What a process did, by a clock that is behind its own by so much."""
    return dataclasses.replace(
        process,
        operations=[
            dataclasses.replace(each, start=each.start - microseconds) for each in process.operations
        ],
        sent=[dataclasses.replace(each, start=each.start - microseconds) for each in process.sent],
        arrivals={key: [time - microseconds for time in times] for key, times in process.arrivals.items()},
    )
