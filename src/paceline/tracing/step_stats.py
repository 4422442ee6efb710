"""From the `RunMetadata` of traced steps to the record of `paceline.model.traces.traced_steps`: pure.

The bytes of a message are divided exactly among the variables in it by the sizes of their parts; ids that
serve several variables count equally for each of them; time is divided by bytes. The start of a message is
when its sender began to send (``grpc_remote_worker.cc``), so the time in which the receiver waits for a value
that is not yet made is not transfer time.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from paceline.model.traces.traced_steps import (
    ClockOffset,
    Direction,
    Event,
    Operation,
    Split,
    Trace,
    Transfer,
)
from paceline.model.variables.variables import Name, without_part
from paceline.tracing import clock_offsets, dataflows

Number = TypeVar("Number", int, float)

_SERVER = "/job:ps/"
_NEARLY_ALL = 0.9
_MESSAGE_KIND = "RecvTensor"
_INPUT_KINDS = re.compile(r"IteratorGetNext|QueueDequeue|ReaderRead")


@dataclass(frozen=True)
class TracedStep:
    """A step as TensorFlow traced it.

    `waited_seconds` is how long it waited for input before it began; None if that was not measured.
    """

    number: int
    metadata: Any
    waited_seconds: float | None = None


@dataclass(frozen=True)
class StepRecord:
    """What traced steps say."""

    splits: tuple[Split, ...]
    transfers: tuple[Transfer, ...]
    operations: tuple[Operation, ...]
    events: tuple[Event, ...]
    clocks: tuple[ClockOffset, ...]

    def trace(
        self, trainer: str, attempt: int, at: float, untraced_step_microseconds: float | None = None
    ) -> Trace:
        """Return the trace of a trainer with this record."""
        return Trace(
            trainer=trainer,
            attempt=attempt,
            at=at,
            untraced_step_microseconds=untraced_step_microseconds,
            splits=self.splits,
            transfers=self.transfers,
            operations=self.operations,
            events=self.events,
            clocks=self.clocks,
        )


def read(steps: Sequence[TracedStep], trainer: str, names: Mapping[str, Name] | None = None) -> StepRecord:
    """Read traced steps of a trainer.

    Args:
        steps: their statistics; a step without any is ignored.
        trainer: its task, `/job:worker/task:0`.
        names: the user's names of variables and slots by TensorFlow's names. For other names, a partition
            suffix is split off, and a slot is recognised because its name is below that of its variable.
    """
    flows = {step.number: dataflows.read(step.metadata.step_stats) for step in steps}
    flows = {number: flow for number, flow in flows.items() if flow.nodes}
    return record(flows, trainer, names, {step.number: step.waited_seconds for step in steps})


def record(
    flows: Mapping[int, dataflows.Dataflow],
    trainer: str,
    names: Mapping[str, Name] | None = None,
    waits: Mapping[int, float | None] | None = None,
) -> StepRecord:
    """Return the record of the dataflows of a trainer's steps, by step number; `waits` are in seconds."""
    tasks = {node.device for flow in flows.values() for node in flow.nodes.values()} - {trainer}
    offsets = {task: clock_offsets.between(flows.values(), trainer, task) for task in sorted(tasks)}
    clock = _Clock({task: offset.microseconds for task, offset in offsets.items() if offset is not None})
    read_steps = [_Step(number, flow, trainer, names or {}, clock) for number, flow in flows.items()]
    return StepRecord(
        splits=tuple(step.split((waits or {}).get(step.number)) for step in read_steps),
        transfers=tuple(transfer for step in read_steps for transfer in step.transfers()),
        operations=tuple(operation for step in read_steps for operation in step.operations()),
        events=tuple(sorted((event for step in read_steps for event in step.events()), key=_start_of_event)),
        clocks=tuple(
            ClockOffset(
                process=process(task),
                offset_microseconds=offset.microseconds,
                uncertainty_microseconds=offset.uncertainty,
            )
            for task, offset in offsets.items()
            if offset is not None
        ),
    )


def process(task: str) -> str:
    """Return the name of a task's replica: `ps-0`."""
    _, job, index = task.replace("/job:", "/").replace("task:", "").split("/")
    return f"{job}-{index}"


def shared_out(total: int, shares: dataflows.Shares) -> dict[str, int]:
    """Divide a whole number by shares, exactly: the rest goes to the parts that rounding reduced most."""
    exact = {name: total * share for name, share in shares.items()}
    parts = {name: int(value) for name, value in exact.items()}
    missing = total - sum(parts.values())
    for name in sorted(exact, key=lambda name: parts[name] - exact[name])[: max(0, missing)]:
        parts[name] += 1
    return parts


def length(intervals: Iterable[tuple[float, float]]) -> float:
    """Return the length of a union of intervals."""
    total, reached = 0.0, float("-inf")
    for start, end in sorted(intervals):
        total += max(0.0, end - max(start, reached))
        reached = max(reached, end)
    return total


@dataclass(frozen=True)
class _Clock:
    """Converts times of all tasks to the trainer's clock; `offsets` are in microseconds."""

    offsets: Mapping[str, float]

    def at(self, task: str, microseconds: float) -> float:
        return microseconds - self.offsets.get(task, 0.0)

    def of_node(self, node: dataflows.OperationNode) -> tuple[float, float]:
        start = self.at(node.device, node.start)
        return start, start + node.microseconds

    def of_message(
        self, message: dataflows.Message, made: dataflows.OperationNode | None
    ) -> tuple[float, float] | None:
        """Return start and end of a message; None if they were not measured.

        TensorFlow forces a start into the receiver's time. If the clocks differ, that start means nothing,
        and the message begins when its content was made.
        """
        if message.start is None or message.end is None:
            return None
        end = self.at(message.receiver, message.end)
        apart = self.at(message.sender, 0.0) != self.at(message.receiver, 0.0)
        if apart and made is not None:
            return min(self.of_node(made)[1], end), end
        return min(self.at(message.receiver, message.start), end), end


class _Step:
    """The statistics of one step."""

    def __init__(
        self,
        number: int,
        flow: dataflows.Dataflow,
        trainer: str,
        names: Mapping[str, Name],
        clock: _Clock,
    ) -> None:
        self.number = number
        self._flow = flow
        self._trainer = trainer
        self._names = names
        self._clock = clock
        self._times = {
            message: time
            for message in flow.messages
            if (time := clock.of_message(message, flow.producer(message))) is not None
        }

    def split(self, waited_seconds: float | None) -> Split:
        """Divide the step's time into compute, input, pull and push.

        Each moment counts for the first of these that is going on.
        """
        nodes = [(node, self._clock.of_node(node)) for node in self._flow.nodes.values()]
        times = [time for _, time in nodes] + list(self._times.values())
        start, end = min(time[0] for time in times), max(time[1] for time in times)
        own = [(node, time) for node, time in nodes if node.device == self._trainer]
        inputs = [time for node, time in own if _INPUT_KINDS.match(node.kind)]
        covered = [time for node, time in own if not _INPUT_KINDS.match(node.kind)]
        lengths = [length(covered)]
        gradients = self._gradients()
        for kind in (inputs, self._pulls(start, gradients), self._pushes(gradients)):
            covered += kind
            lengths.append(length(covered))
        compute, waiting, pull, push = (
            after - before for before, after in zip([0.0, *lengths], lengths, strict=False)
        )
        measured = waited_seconds is not None or inputs
        return Split(
            step=self.number,
            start_at=start / 1e6,
            input_wait_microseconds=(waited_seconds or 0.0) * 1e6 + waiting if measured else None,
            pull_microseconds=pull,
            compute_microseconds=compute,
            push_microseconds=push,
            other_microseconds=max(0.0, end - start - lengths[-1]),
        )

    def _pulls(self, start: float, gradients: Sequence[tuple[str, float]]) -> list[tuple[float, float]]:
        """Return the time until the last value arrived, in which an otherwise idle trainer waits for values.

        A value that arrives after the trainer's last gradient was not used for it: a hook may ask for the
        global step.
        """
        ends = [
            self._end(message)
            for message in self._flow.messages
            if self._direction(message) is Direction.PULL and self._flow.readers(message)
        ]
        last = max((ready for _, ready in gradients), default=float("inf"))
        used = [end for end in ends if end <= last]
        return [(start, max(used))] if used else []

    def _gradients(self) -> list[tuple[str, float]]:
        """Return, for each gradient, the server that it goes to and when it was made."""
        found = []
        for message in self._flow.messages:
            made = self._flow.producer(message)
            if self._direction(message) is Direction.PUSH and made is not None:
                found.append((message.receiver, self._clock.of_node(made)[1]))
        return found

    def _end(self, message: dataflows.Message) -> float:
        """Return when a message arrived or, if that was not measured, when the first operation took it."""
        if message in self._times:
            return self._times[message][1]
        return min(self._clock.of_node(node)[0] for node in self._flow.readers(message))

    def _pushes(self, gradients: Sequence[tuple[str, float]]) -> list[tuple[float, float]]:
        """Return, for each server, the time from its first finished gradient to its last operation."""
        began: dict[str, float] = {}
        for server, ready in gradients:
            began[server] = min(began.get(server, ready), ready)
        ends: dict[str, float] = {}
        for node in self._flow.nodes.values():
            ends[node.device] = max(ends.get(node.device, 0.0), self._clock.of_node(node)[1])
        return [(start, max(start, ends.get(server, start))) for server, start in began.items()]

    def transfers(self) -> list[Transfer]:
        """Return the transfers by server, direction and variable."""
        measured_parts: dict[tuple[str, Direction, Name], list[tuple[int | None, float | None]]] = {}
        for message in self._flow.messages:
            direction = self._direction(message)
            if direction is None:
                continue
            pulls = direction is Direction.PULL
            server = process(message.sender if pulls else message.receiver)
            shares = self._flow.pulled(message) if pulls else self._flow.pushed(message)
            time = self._times.get(message)
            for name, size, share in self._parts(message.bytes, shares):
                microseconds = None if time is None else (time[1] - time[0]) * share
                measured_parts.setdefault((server, direction, name), []).append((size, microseconds))
        return [
            Transfer(
                step=self.number, server=server, direction=direction, variable=variable, shard=shard,
                bytes=_total([size for size, _ in parts]), microseconds=_total([time for _, time in parts]),
            )
            for (server, direction, (variable, shard)), parts in sorted(measured_parts.items(), key=_sortable)
        ]  # fmt: skip

    def _parts(self, total: int | None, shares: dataflows.Shares) -> list[tuple[Name, int | None, float]]:
        """Return the variables in a message, with their bytes and shares."""
        if not shares:
            return [((None, None), total, 1.0)]
        sizes = {} if total is None else shared_out(total, shares)
        return [(self._name(variable), sizes.get(variable), share) for variable, share in shares.items()]

    def operations(self) -> list[Operation]:
        """Return the operations of the servers, by kind and variable."""
        totals: dict[tuple[str, str, Name], list[float]] = {}
        for node in self._flow.nodes.values():
            if not node.device.startswith(_SERVER) or not node.kind:
                continue
            name = self._owner(node)
            total = totals.setdefault((process(node.device), node.kind, name), [0, 0.0])
            total[0] += 1
            total[1] += node.microseconds
        return [
            Operation(
                step=self.number, server=server, kind=kind, variable=variable, shard=shard,
                calls=int(total[0]), microseconds=total[1],
            )
            for (server, kind, (variable, shard)), total in sorted(totals.items(), key=_sortable)
        ]  # fmt: skip

    def _owner(self, node: dataflows.OperationNode) -> Name:
        """Return the variable that nearly all values of an operation belong to.

        A small share may belong to another variable: a learning rate follows from a count of steps, which is
        a variable as well.
        """
        shares: dict[Name, float] = {}
        for variable, share in self._flow.belongs_to(node).items():
            name = self._name(variable)
            shares[name] = shares.get(name, 0.0) + share
        return next((name for name, share in shares.items() if share > _NEARLY_ALL), (None, None))

    def events(self) -> list[Event]:
        """Return all operations and messages as events."""
        operations = [
            self._event(
                node.device, node.name, node.kind, None, sum(node.outputs.values()), self._clock.of_node(node)
            )
            for node in self._flow.nodes.values()
        ]
        return operations + [
            self._event(
                message.receiver, message.tensor, _MESSAGE_KIND, process(message.sender), message.bytes, time
            )
            for message, time in self._times.items()
        ]

    def _event(
        self,
        task: str,
        name: str,
        kind: str,
        sender: str | None,
        size: int | None,
        time: tuple[float, float],
    ) -> Event:
        return Event(
            step=self.number, process=process(task), name=name, kind=kind, sender=sender, bytes=size,
            start_microseconds=time[0], microseconds=time[1] - time[0],
        )  # fmt: skip

    def _direction(self, message: dataflows.Message) -> Direction | None:
        if message.receiver == self._trainer and message.sender.startswith(_SERVER):
            return Direction.PULL
        if message.sender != self._trainer or not message.receiver.startswith(_SERVER):
            return None
        made = self._flow.producer(message)
        return Direction.IDS if made is not None and made.integer else Direction.PUSH

    def _name(self, variable: str) -> Name:
        """Return the user's name of a variable; for a slot, that of the variable that its name is below."""
        parts = variable.split("/")
        above = ["/".join(parts[:count]) for count in range(len(parts), 0, -1)]
        known = next((name for name in above if name in self._names), None)
        if known is not None:
            return self._names[known]
        owner = next((name for name in reversed(above) if name in self._flow.holders), variable)
        return without_part(owner)


def _total(values: Sequence[Number | None]) -> Number | None:
    """Return the sum; None if a value was not measured."""
    known = [value for value in values if value is not None]
    return sum(known[1:], known[0]) if known and len(known) == len(values) else None


def _start_of_event(event: Event) -> float:
    return event.start_microseconds


def _sortable(item: tuple[tuple[Any, ...], Any]) -> tuple[Any, ...]:
    *parts, (variable, shard) = item[0]
    return (*parts, variable or "", -1 if shard is None else shard)
