"""Dataflows of steps from profiles of a cluster's processes, as TensorFlow's profiler takes them: pure.

A step of a strategy is a function whose parts run on a worker and on parameter servers under one run id. A
profile (`profiled_processes`) has each operation that ran, each tensor that was sent, with the operations
that made and took it, and when tensors arrived. It has neither the bytes of a tensor that was sent nor the
variable that an operation takes. The bytes follow from the shapes of the taker's inputs (`shapes`), if that
is certain, and the variables from names and shapes (`profile_owners`). A step lasts from one batch that the
worker takes to the next; if the function takes no batch, the step is the whole run.
"""

from __future__ import annotations

import bisect
import collections
import dataclasses
import itertools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from paceline.model.variables.variables import Variable
from paceline.tracing import dataflows, placements, profile_owners, profiled_processes, shapes
from paceline.tracing.dataflows import Message, OperationNode, Shares
from paceline.tracing.profile_owners import Owners
from paceline.tracing.profiled_processes import RECEIVES, SERVER, Process, ProfiledOperation, Sent, other_end
from paceline.tracing.shapes import Dimensions

_INPUT = "IteratorGetNext"
_CONTROL = re.compile(r"(.+/)?(LoopCond|NoOp|group_deps|loop_body_control|merge|exit|switch)(_\d+)*(/_\d+)*$")
_CHANGE = re.compile(rf"(.+/)?({profile_owners.CHANGES})(_\d+)*$")
_CONSTANT = re.compile(r"(.+/)?Const(_\d+)*(/_\d+)*$")


@dataclass(eq=False)
class Step(dataflows.Dataflow):
    """The dataflow of a step.

    `owners` has the variables by device and operation; `makers` has the node that made the content of a
    message.
    """

    owners: Mapping[tuple[str, str], str]
    makers: Mapping[Message, OperationNode]

    def producer(self, message: Message) -> OperationNode | None:
        """Return the node that made the content of a message."""
        return self.makers.get(message)

    def readers(self, message: Message) -> Sequence[OperationNode]:
        """Return the operation that takes a variable's values.

        Other messages, such as metrics, are for the caller and have none.
        """
        taker = self.nodes.get((message.receiver, message.name))
        return () if taker is None or not self.pulled(message) else (taker,)

    def belongs_to(self, node: OperationNode) -> Shares:
        """Return the variable that an operation works for."""
        return self._owned(node.device, node.name)

    def pulled(self, message: Message) -> Shares:
        """Return the variable that a message brings."""
        return self._owned(message.sender, message.tensor)

    def pushed(self, message: Message) -> Shares:
        """Return the variable that a message goes to."""
        return self._owned(message.receiver, message.name)

    def _owned(self, device: str, name: str) -> Shares:
        owner = self.owners.get((device, name))
        return {} if owner is None else {owner: 1.0}


def read(
    profiles: Mapping[str, Any], count: int, at: float = 0.0, variables: Sequence[Variable] = ()
) -> dict[str, list[Step]]:
    """Read whole steps of each worker, from the middle of profiles of one moment (`XSpace` messages).

    Returns the steps by task; a worker that ran no step is left out.

    Args:
        profiles: by task.
        count: how many steps at most, for each worker.
        at: when the profiles were taken (Unix seconds), for profiles that do not say when they began.
        variables: the variables of the model, which are recognised by server and shape.
    """
    processes = profiled_processes.read(profiles, at)
    found = {}
    for task, process in processes.items():
        runs = {sent.run for sent in process.sent if sent.receiver.startswith(SERVER)}
        if not task.startswith(SERVER) and runs:
            found[task] = list(_steps(task, runs, processes, count, variables))
    return {task: steps for task, steps in found.items() if steps}


def _steps(
    worker: str,
    runs: set[int],
    processes: Mapping[str, Process],
    count: int,
    variables: Sequence[Variable],
) -> Iterator[Step]:
    run_processes = {
        task: dataclasses.replace(
            process,
            operations=[operation for operation in process.operations if operation.run in runs],
            sent=[sent for sent in _made(process) if sent.run in runs and not _is_signal(sent)],
        )
        for task, process in processes.items()
        if task == worker or task.startswith(SERVER)
    }
    run_processes = profiled_processes.aligned(run_processes, worker)
    owners = Owners(run_processes, placements.Placements(variables))
    begins = _begins(run_processes[worker].operations)
    first = max(0, (len(begins) - 1 - count) // 2)
    chosen = begins[first : first + count + 1]
    for begin, end in itertools.pairwise(chosen):
        yield _step(run_processes, owners, begin, end)


def _is_signal(sent: Sent) -> bool:
    """Return whether a tensor only says that something is done: an update has no value to compute with."""
    return bool(
        _CONTROL.match(sent.maker)
        or _CHANGE.match(sent.maker)
        or _CONTROL.match(sent.taker)
        or _CONSTANT.match(sent.taker)
    )


def _made(process: Process) -> list[Sent]:
    """Return the tensors that were sent with a value, without the dead ones at the end of a loop.

    At the end of a loop each of its messages is sent once more, dead. A dead tensor has no value
    (``control_flow.h``), so the operation that would make it does not run; the dead tensor comes last.
    """
    ran = collections.Counter((each.run, each.name) for each in process.operations)
    known = {name for _, name in ran}
    groups: dict[tuple[int, str, str, str], list[Sent]] = collections.defaultdict(list)
    for sent in sorted(process.sent, key=lambda each: each.start):
        groups[sent.run, sent.maker, sent.taker, sent.receiver].append(sent)
    return [
        sent
        for (run, maker, _, _), group in groups.items()
        for sent in (group[: ran[run, maker]] if maker in known else group)
    ]


def _begins(operations: Sequence[ProfiledOperation]) -> list[float]:
    """Return when steps began: with the input that is taken most often, or else with the run."""
    inputs = collections.Counter(each.name for each in operations if each.kind.startswith(_INPUT))
    if inputs:
        name, _ = inputs.most_common(1)[0]
        return sorted(each.start for each in operations if each.name == name)
    runs: dict[int, float] = {}
    for each in operations:
        runs[each.run] = min(each.start, runs.get(each.run, each.start))
    return sorted(runs.values())


def _step(processes: Mapping[str, Process], owners: Owners, begin: float, end: float) -> Step:
    nodes = {
        (task, operation.name): OperationNode(
            task, operation.name, operation.kind, (), {}, False, operation.start, operation.microseconds
        )
        for task, process in processes.items()
        for operation in process.operations
        if begin <= operation.start < end and operation.kind not in RECEIVES
    }
    makers = {}
    for task, process in processes.items():
        for sent in process.sent:
            if begin <= _taken_at(processes.get(sent.receiver), sent) < end:
                arrived = _arrival(processes[sent.receiver], sent) if sent.receiver in processes else None
                integer = owners.takes_ids(task, sent)
                size = None
                if sent.receiver in processes:
                    fits = owners.fits(task, sent)
                    size = _bytes(processes[sent.receiver], process, sent, fits, integer=integer)
                message = Message(
                    sent.maker, sent.taker, task, sent.receiver, size, arrived and sent.start, arrived
                )
                makers[message] = OperationNode(task, sent.maker, "", (), {}, integer, sent.start, 0.0)
    ends = {
        end
        for message in makers
        for end in ((message.sender, message.tensor), (message.receiver, message.name))
    }
    named = {key: owner for key in ends | nodes.keys() if (owner := owners.of(*key)) is not None}
    return Step(nodes, list(makers), named, makers)


def _taken_at(receiver: Process | None, sent: Sent) -> float:
    """Return when a tensor was used: a server may send for the next step before that step begins."""
    taker = receiver.first(sent.taker, sent.start) if receiver else None
    return sent.start if taker is None else taker.start


def _bytes(
    receiver: Process, sender: Process, sent: Sent, fits: Callable[[Dimensions], bool], *, integer: bool
) -> int | None:
    """Return the size of a tensor that was sent: that of its taker's input of the right type.

    If several inputs are possible, looked-up rows must be as many as the ids, and values or gradients of a
    variable must fit the variable. None if the size is not certain.
    """
    taker = receiver.first(sent.taker, sent.start)
    taken = [] if taker is None else shapes.read(taker.shapes)
    taken = [each for each in taken if each.is_integer == integer]
    made = sender.last(sent.maker, sent.start)
    if not integer and made is not None and made.kind == profile_owners.GATHER:
        ids = [each.dimensions for each in shapes.read(made.shapes) if each.is_integer]
        taken = [each for each in taken if any(each.dimensions[: len(rows)] == rows for rows in ids)]
    sizes = {each.bytes for each in taken}
    if len(sizes) > 1:
        sizes = {each.bytes for each in taken if fits(each.dimensions)}
    return sizes.pop() if len(sizes) == 1 else None


def _arrival(receiver: Process, sent: Sent) -> float | None:
    """Return when a tensor arrived."""
    times = receiver.arrivals.get((sent.run, other_end(sent)), ())
    place = bisect.bisect_left(times, sent.start)
    return times[place] if place < len(times) else None
