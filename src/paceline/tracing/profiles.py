"""Dataflows of steps from profiles of a cluster's processes, as TensorFlow's profiler takes them: pure.

A step of a strategy is a function whose parts run on a worker and on parameter servers under one run id. A
profile (`XSpace`) has each operation that ran, each tensor that was sent, with who made and who takes it, and
when tensors were there. It has neither the bytes of a tensor that was sent nor the variable that an operation
takes. Bytes follow from the shapes of what the taker takes (`shapes`), where that is certain. Variables
follow from names, which are those of layers: `model/site/Gather_1` reads part 1 of `model/site`; its gradient
`gradient_tape/model/site/Gather_1/Reshape` goes to `Adagrad/update_3/Unique`, so `Adagrad/update_3` updates
that part. A step lasts from one batch that the worker takes to the next; in a function that takes none, it is
the whole run.

Source: `xplane.proto`; `executor.cc` (runs), `rendezvous.cc` (keys of what is sent).
"""

from __future__ import annotations

import bisect
import collections
import functools
import itertools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from paceline.tracing import dataflows, shapes
from paceline.tracing.dataflows import Message, Node, Shares

_HOST, _TASK = "/host:CPU", "Task Environment"
_SERVER, _INPUT = "/job:ps/", "IteratorGetNext"
_RUN = "ExecutorState::Process"
_BEGUN, _DONE = f"{_RUN}Async::Start", f"{_RUN}Async::Done"
_SEND, _RECEIVES = "_Send", {"_Recv", "_HostRecv"}
_GATHER, _READ, _UNIQUE = "ResourceGather", re.compile(r"/ReadVariableOp(_\d+)?$"), "Unique"
_OF_GRADIENTS = re.compile(r"(^|/)(gradient_tape|gradients)/")
_WRAPPINGS = re.compile(
    r"(while|cond|body|then|else|_\d+|gradient_tape|gradients|(Stateful)?PartitionedCall(_\d+)?)$"
)
_LOOKUP = re.compile(r"(?P<layer>.+?)(/embedding_lookup\w*)?(/Gather(_(?P<part>\d+))?)?$")
_APPLY = re.compile(r"ResourceApply")
_UPDATE = re.compile(r"(?P<update>.+/update(_\d+)?)/")
_CONTROL = re.compile(r"(.+/)?(LoopCond|NoOp|group_deps|loop_body_control|merge|exit|switch)(_\d+)*(/_\d+)*$")


@dataclass(frozen=True)
class _Operation:
    """An operation that ran; microseconds, Unix time."""

    run: int
    name: str
    kind: str
    start: float
    microseconds: float
    shapes: str = ""


@dataclass(frozen=True)
class _Sent:
    """A tensor that was sent by the node `name`."""

    run: int
    name: str
    maker: str
    taker: str
    receiver: str
    start: float


@dataclass
class _Process:
    """What one process did; `arrivals` are times by run and receiving node."""

    operations: list[_Operation] = field(default_factory=list)
    sent: list[_Sent] = field(default_factory=list)
    arrivals: dict[tuple[int, str], list[float]] = field(
        default_factory=lambda: collections.defaultdict(list)
    )

    @functools.cached_property
    def runs_of(self) -> Mapping[str, Sequence[_Operation]]:
        """Each operation as often as it ran, by its start."""
        found: dict[str, list[_Operation]] = collections.defaultdict(list)
        for each in sorted(self.operations, key=_start):
            found[each.name].append(each)
        return found

    def first(self, name: str, at: float) -> _Operation | None:
        """The first run of an operation from a time on."""
        runs = self.runs_of.get(name, ())
        place = bisect.bisect_left(runs, at, key=_start)
        return runs[place] if place < len(runs) else None

    def last(self, name: str, at: float) -> _Operation | None:
        """The last run of an operation until a time."""
        runs = self.runs_of.get(name, ())
        place = bisect.bisect_right(runs, at, key=_start)
        return runs[place - 1] if place else None


def _start(operation: _Operation) -> float:
    return operation.start


@dataclass(eq=False)
class Step(dataflows.Dataflow):
    """The dataflow of a step: variables by device and operation, and who made what a message carries."""

    owners: Mapping[tuple[str, str], str]
    makers: Mapping[Message, Node]

    def producer(self, message: Message) -> Node | None:
        """The node that made what a message carries."""
        return self.makers.get(message)

    def readers(self, message: Message) -> Sequence[Node]:
        """The operation that takes a variable's values; metrics and the like are for the caller."""
        taker = self.nodes.get((message.receiver, message.name))
        return () if taker is None or not self.pulled(message) else (taker,)

    def belongs_to(self, node: Node) -> Shares:
        """The variable that an operation works for."""
        return self._owned(node.device, node.name)

    def pulled(self, message: Message) -> Shares:
        """The variable that a message brings."""
        return self._owned(message.sender, message.tensor)

    def pushed(self, message: Message) -> Shares:
        """The variable that a message goes to."""
        return self._owned(message.receiver, message.name)

    def _owned(self, device: str, name: str) -> Shares:
        owner = self.owners.get((device, name))
        return {} if owner is None else {owner: 1.0}


def read(profiles: Mapping[str, Any], count: int) -> dict[str, list[Step]]:
    """Reads so many whole steps of each worker, from the middle of profiles of one moment (`XSpace` messages)
    by task; a worker that ran none is left out.
    """
    processes = {task: _process(space) for task, space in profiles.items()}
    found = {}
    for task, process in processes.items():
        runs = {sent.run for sent in process.sent if sent.receiver.startswith(_SERVER)}
        if not task.startswith(_SERVER) and runs:
            found[task] = list(_steps(task, runs, processes, count))
    return {task: steps for task, steps in found.items() if steps}


def _process(space: Any) -> _Process:
    process = _Process()
    planes = {plane.name: plane for plane in space.planes}
    began = _stats(planes[_TASK], planes[_TASK])["profile_start_time"] if _TASK in planes else 0
    if _HOST in planes:
        for line in planes[_HOST].lines:
            _read_line(process, planes[_HOST], line, began + line.timestamp_ns)
    for times in process.arrivals.values():
        times.sort()
    return process


def _read_line(process: _Process, plane: Any, line: Any, began_nanoseconds: int) -> None:
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
            if stats["kernel_type"] in _RECEIVES:
                process.arrivals[stats["step_id"], stats["name"]].append(start)
        elif kind == _SEND:
            stats = _stats(plane, event)
            receiver = dataflows.task(stats["key"].split(";")[2])
            node = name.removesuffix(f":{_SEND}")
            process.sent.append(_Sent(run, node, stats["from"], stats["to"], receiver, start))
        elif kind and name.endswith(f":{kind}") and start <= until:
            taken = str(_stats(plane, event).get("shape", ""))
            process.operations.append(
                _Operation(run, name[: -len(kind) - 1], kind, start, microseconds, taken)
            )
        elif "::DoCompute" in name:
            kind = name.removesuffix("Op::DoCompute")
            process.operations.append(_Operation(_stats(plane, event)["id"], kind, kind, start, microseconds))


def _stats(plane: Any, described: Any) -> dict[str, Any]:
    found = {}
    for stat in described.stats:
        which = stat.WhichOneof("value")
        value = getattr(stat, which)
        found[plane.stat_metadata[stat.metadata_id].name] = (
            plane.stat_metadata[value].name if which == "ref_value" else value
        )
    return found


def _steps(worker: str, runs: set[int], processes: Mapping[str, _Process], count: int) -> Iterator[Step]:
    own = {
        task: _Process(
            [each for each in process.operations if each.run in runs],
            [each for each in _made(process) if each.run in runs and not _CONTROL.match(each.maker)],
            process.arrivals,
        )
        for task, process in processes.items()
        if task == worker or task.startswith(_SERVER)
    }
    owners = _Owners(own)
    begins = _begins(own[worker].operations)
    first = max(0, (len(begins) - 1 - count) // 2)
    chosen = begins[first : first + count + 1]
    for begin, end in itertools.pairwise(chosen):
        yield _step(own, owners, begin, end)


def _made(process: _Process) -> list[_Sent]:
    """What was sent and had been made: at the end of a loop each of its messages goes once more, dead.

    Such a tensor has no value (``control_flow.h``), so what would make it does not run; it comes last.
    """
    ran = collections.Counter((each.run, each.name) for each in process.operations)
    known = {name for _, name in ran}
    groups: dict[tuple[int, str, str, str], list[_Sent]] = collections.defaultdict(list)
    for sent in sorted(process.sent, key=lambda each: each.start):
        groups[sent.run, sent.maker, sent.taker, sent.receiver].append(sent)
    return [
        sent
        for (run, maker, _, _), group in groups.items()
        for sent in (group[: ran[run, maker]] if maker in known else group)
    ]


def _begins(operations: Sequence[_Operation]) -> list[float]:
    """When steps began: with the input that is taken most often, else with the run."""
    inputs = collections.Counter(each.name for each in operations if each.kind.startswith(_INPUT))
    if inputs:
        name, _ = inputs.most_common(1)[0]
        return sorted(each.start for each in operations if each.name == name)
    runs: dict[int, float] = {}
    for each in operations:
        runs[each.run] = min(each.start, runs.get(each.run, each.start))
    return sorted(runs.values())


def _step(own: Mapping[str, _Process], owners: _Owners, begin: float, end: float) -> Step:
    nodes = {
        (task, each.name): Node(task, each.name, each.kind, (), {}, False, each.start, each.microseconds)
        for task, process in own.items()
        for each in process.operations
        if begin <= each.start < end
    }
    makers = {}
    for task, process in own.items():
        for sent in process.sent:
            if begin <= _taken_at(own.get(sent.receiver), sent) < end:
                arrived = _arrival(own[sent.receiver], sent) if sent.receiver in own else None
                integer = owners.takes_ids(sent)
                size = None
                if sent.receiver in own:
                    size = _bytes(
                        own[sent.receiver], process, sent, owners.shape(task, sent), integer=integer
                    )
                message = Message(
                    sent.maker, sent.taker, task, sent.receiver, size, arrived and sent.start, arrived
                )
                makers[message] = Node(task, sent.maker, "", (), {}, integer, sent.start, 0.0)
    ends = {end for each in makers for end in ((each.sender, each.tensor), (each.receiver, each.name))}
    named = {key: owner for key in ends | nodes.keys() if (owner := owners.of(*key)) is not None}
    return Step(nodes, list(makers), named, makers)


def _taken_at(receiver: _Process | None, sent: _Sent) -> float:
    """When it was used: a server may send for the next step before that begins."""
    taker = receiver.first(sent.taker, sent.start) if receiver else None
    return sent.start if taker is None else taker.start


def _bytes(
    receiver: _Process, sender: _Process, sent: _Sent, variable: shapes.Dimensions | None, *, integer: bool
) -> int | None:
    """The size of what was sent: that of what its taker takes, of the right type.

    Of several that may be meant, rows that were looked up are as many as the ids, and a variable that is sent
    whole has its own shape. None: it is not certain.
    """
    taker = receiver.first(sent.taker, sent.start)
    taken = [] if taker is None else shapes.read(taker.shapes)
    taken = [each for each in taken if each.is_integer == integer]
    made = sender.last(sent.maker, sent.start)
    if not integer and made is not None and made.kind == _GATHER:
        ids = [each.dimensions for each in shapes.read(made.shapes) if each.is_integer]
        taken = [each for each in taken if any(each.dimensions[: len(rows)] == rows for rows in ids)]
    sizes = {each.bytes for each in taken}
    if len(sizes) > 1:
        sizes = {each.bytes for each in taken if each.dimensions == variable}
    return sizes.pop() if len(sizes) == 1 else None


def _arrival(receiver: _Process, sent: _Sent) -> float | None:
    """When it was there: the node that receives has the number after the sender's (`graph_partition.cc`)."""
    name, _, number = sent.name.rpartition("/_")
    if not number.isdecimal():
        return None
    times = receiver.arrivals.get((sent.run, f"{name}/_{int(number) + 1}"), ())
    place = bisect.bisect_left(times, sent.start)
    return times[place] if place < len(times) else None


class _Owners:
    """Which variable an operation of a server reads or updates, by their names."""

    def __init__(self, processes: Mapping[str, _Process]) -> None:
        self._gathers = {
            (task, each.name)
            for task, process in processes.items()
            for each in process.operations
            if each.kind == _GATHER
        }
        sent = [(task, each) for task, process in processes.items() for each in process.sent]
        known = _looked_up(_unwrapped(name) for _, name in self._gathers)
        self._owners = {key: known[_unwrapped(key[1])] for key in self._gathers}
        reads = {
            (task, each.maker): _unwrapped(_READ.sub("", each.maker))
            for task, each in sent
            if _READ.search(each.maker)
        }
        known.update((name, name) for name in reads.values())
        for _, each in sent:
            update = _UPDATE.match(each.taker)
            if update and _OF_GRADIENTS.search(each.maker):
                owner = _nearest(known, _unwrapped(each.maker))
                if owner is not None:
                    self._owners[each.receiver, update["update"]] = owner
        trained = set(self._owners.values())
        self._owners.update((key, name) for key, name in reads.items() if name in trained)
        self._shapes = {
            name: max(taken, key=lambda each: each.bytes).dimensions
            for task, process in processes.items()
            for each in process.operations
            if _APPLY.match(each.kind)
            and (name := self.of(task, each.name)) is not None
            and (taken := shapes.read(each.shapes))
        }

    def shape(self, task: str, sent: _Sent) -> shapes.Dimensions | None:
        """The shape of the variable that is sent whole, or whose whole gradient is: that of its update."""
        name = self.of(task, sent.maker) or self.of(sent.receiver, sent.taker)
        return None if name is None else self._shapes.get(name)

    def of(self, task: str, name: str) -> str | None:
        """The variable of an operation, as its layer is called, and the number of a part."""
        update = _UPDATE.match(name)
        return self._owners.get((task, name)) or (
            self._owners.get((task, update["update"])) if update else None
        )

    def takes_ids(self, sent: _Sent) -> bool:
        """Whether what is sent says which rows are meant."""
        return sent.taker.endswith(_UNIQUE) or (sent.receiver, sent.taker) in self._gathers


def _looked_up(names: Iterable[str]) -> dict[str, str]:
    """The variables that lookups of these names read: the layer, and the part where it has several."""
    found = {name: match for name in set(names) if (match := _LOOKUP.match(name))}
    parts = collections.Counter(match["layer"] for match in found.values())
    return {
        name: match["layer"] + (f"/part_{match['part'] or 0}" if parts[match["layer"]] > 1 else "")
        for name, match in found.items()
    }


def _unwrapped(name: str) -> str:
    """A name without the loops, calls and gradients that it stands in."""
    parts = name.split("/")
    while len(parts) > 1 and _WRAPPINGS.match(parts[0]):
        del parts[0]
    return "/".join(parts)


def _nearest(known: Mapping[str, str], name: str) -> str | None:
    """What is known of a name or of the nearest one above it."""
    while name not in known and "/" in name:
        name = name.rpartition("/")[0]
    return known.get(name)
