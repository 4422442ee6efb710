"""What the processes of a cluster did while they were profiled (`XSpace` messages): pure.

It consists of operations that ran, tensors that were sent to other processes, and tensors that arrived. A
profile of an old version (seen in 2.15) does not say when it began: then the clocks are aligned by what was
sent in a run (`clock_offsets`). A profile of a still older version (seen in 2.11) says neither to which
process a tensor was sent nor when it arrived: then the receiver is the process that has the other end of the
transfer.

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
    """An operation that ran; `start` is Unix time in microseconds."""

    run: int
    name: str
    kind: str
    start: float
    microseconds: float
    shapes: str = ""


@dataclass(frozen=True)
class Sent:
    """A tensor that the node `name` sent; an empty receiver is unknown."""

    run: int
    name: str
    maker: str
    taker: str
    receiver: str
    start: float


@dataclass
class Process:
    """What one process did.

    `arrivals` are times by run and receiving node. Unless it `is_dated`, its times start from a moment other
    than that of other processes.
    """

    operations: list[ProfiledOperation] = field(default_factory=list)
    sent: list[Sent] = field(default_factory=list)
    arrivals: dict[tuple[int, str], list[float]] = field(
        default_factory=lambda: collections.defaultdict(list)
    )
    is_dated: bool = True

    @functools.cached_property
    def runs_of(self) -> Mapping[str, Sequence[ProfiledOperation]]:
        """All runs of each operation, by their start."""
        found: dict[str, list[ProfiledOperation]] = collections.defaultdict(list)
        for each in sorted(self.operations, key=_start):
            found[each.name].append(each)
        return found

    def first(self, name: str, at: float) -> ProfiledOperation | None:
        """Return the first run of an operation from a time on."""
        runs = self.runs_of.get(name, ())
        place = bisect.bisect_left(runs, at, key=_start)
        return runs[place] if place < len(runs) else None

    def last(self, name: str, at: float) -> ProfiledOperation | None:
        """Return the last run of an operation until a time."""
        runs = self.runs_of.get(name, ())
        place = bisect.bisect_right(runs, at, key=_start)
        return runs[place - 1] if place else None


def _start(operation: ProfiledOperation) -> float:
    return operation.start


def read(profiles: Mapping[str, Any], at: float) -> dict[str, Process]:
    """Read the profiles of one moment, by task.

    `at` is when they were taken (Unix seconds); it is used for profiles that do not say when they began.
    """
    processes = {task: _process(space, int(at * 1e9)) for task, space in profiles.items()}
    _address(processes)
    return processes


def aligned(processes: Mapping[str, Process], worker: str) -> dict[str, Process]:
    """Return the processes with times by a worker's clock, if their profiles do not say when they began."""
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
    """Read what a thread did: an operation belongs to the run that is processed around it."""
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
            # Under this event's own name: some versions also have an event of the node that it works for.
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
    """Find the unknown receivers: they have the other end of what was sent."""
    ends = {
        (operation.run, operation.name): task
        for task, process in processes.items()
        for operation in process.operations
        if operation.kind in RECEIVES
    }
    for process in processes.values():
        process.sent = [
            sent
            if sent.receiver
            else dataclasses.replace(sent, receiver=ends.get((sent.run, other_end(sent)), ""))
            for sent in process.sent
        ]


def other_end(sent: Sent) -> str:
    """Return the receiving node, which has the number after the sender's (`graph_partition.cc`)."""
    name, _, number = sent.name.rpartition("/_")
    return f"{name}/_{int(number) + 1}" if number.isdecimal() else ""


def _offset(worker: Process, trainer: str, process: Process, server: str) -> float:
    """Return by how many microseconds a server's clock is ahead of the worker's; 0 if it is unknown."""
    most, least = _delays(worker, process, server), _delays(process, worker, trainer)
    if not most or not least:
        return 0.0
    return clock_offsets.estimate(-min(least), min(most)).microseconds


def _delays(sender: Process, receiver: Process, task: str) -> list[float]:
    """Return the microseconds from sending a tensor to a task until its use there, each by its own clock.

    A run that began before the profile or continued after it may lack either, so the first and the last run
    do not count. A dead tensor, sent at the end of a loop, is taken by no operation.
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
    """Return what a process did, by a clock that is `microseconds` behind its own."""
    return dataclasses.replace(
        process,
        operations=[
            dataclasses.replace(each, start=each.start - microseconds) for each in process.operations
        ],
        sent=[dataclasses.replace(each, start=each.start - microseconds) for each in process.sent],
        arrivals={key: [time - microseconds for time in times] for key, times in process.arrivals.items()},
    )
