"""The dataflow of a traced step, read from its `StepStats` alone: which variable's values a message carries.

TensorFlow labels each node that ran with its operation and inputs, `split = SplitV(ids_S9, sizes, axis)`, and
each message with its bytes, tensor and devices (``step_stats_collector.cc``, ``grpc_worker_cache_logger``).
The name of a message's tensor begins with the node that made it; the node that received it has that name
followed by `_S` and a number. So the content of a message follows from the nodes before it on the sender and
from the nodes after it on the receiver, however the variables were packed and whatever script built the
graph.

TensorFlow switches its log of messages on in the background (``master_session.cc``), so the log of a busy
process may be missing. A message then has the name that its receiver gives it, and the bytes of what was made
for it, but no time.
"""

from __future__ import annotations

import collections
import functools
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Shares = Mapping[str, float]
"""Parts of something by variable (its name on the server), which add up to 1; empty if unknown."""

_LABEL = re.compile(r"^(?:\[.*\] )?(?P<name>\S+) = (?P<kind>\w+)\((?P<inputs>.*)\)$")
_MESSAGE = re.compile(
    r"(?:^|\] )edge_(?P<edge>\d+)_(?P<tensor>\S+) from (?P<sender>\S+) to (?P<receiver>\S+)$"
)
_DEVICE = re.compile(r"/device:[CGT]PU:\d+$")  # without a GPU's streams, which repeat the GPU's nodes
_HOLDERS = {"VarHandleOp", "VariableV2", "Variable"}
_AS_IT_IS = {"Identity", "Reshape", "Split", "SplitV"}
_NO_DATA = {"Shape", "ShapeN", "Size", "Rank", "Const", "NoOp"}
_DATA_INPUTS: Mapping[str, Sequence[int]] = {
    **dict.fromkeys(("Reshape", "SplitV", "StridedSlice", "Slice", "ExpandDims", "Sum", "Cast"), (0,)),
    "Split": (1,),
}
_INTEGERS = {3, 4, 5, 6, 9, 17, 22, 23}  # the integer types of tensorflow/core/framework/types.proto
_REFERENCE = 100  # the number of a reference type is that of the type plus this


@dataclass(frozen=True)
class OperationNode:
    """An operation that ran.

    `outputs` are bytes by slot. `start` is Unix time in microseconds by the clock of its process.
    """

    device: str
    name: str
    kind: str
    inputs: tuple[tuple[str, int], ...]
    outputs: Mapping[int, int]
    integer: bool
    start: float
    microseconds: float

    @property
    def end(self) -> float:
        """The end of the operation, by the same clock."""
        return self.start + self.microseconds

    @property
    def data_inputs(self) -> tuple[tuple[str, int], ...]:
        """The inputs that values come from, without sizes, shapes and axes."""
        if self.kind in _DATA_INPUTS:
            return tuple(self.inputs[place] for place in _DATA_INPUTS[self.kind] if place < len(self.inputs))
        return self.inputs[:-1] if self.kind == "ConcatV2" else self.inputs


@dataclass(frozen=True)
class Message:
    """A tensor sent from one process to another.

    `start` is by the sender's clock, `end` by the receiver's. `name` is the receiver's name for the tensor,
    empty if no operation there takes it. None means not measured.
    """

    tensor: str
    name: str
    sender: str
    receiver: str
    bytes: int | None
    start: float | None = None
    end: float | None = None


@dataclass(frozen=True)
class _Logged:
    """The log's entry for a message."""

    edge: int
    tensor: str
    sender: str
    receiver: str
    bytes: int
    start: float
    end: float


@dataclass(eq=False)
class Dataflow:
    """The nodes and messages of a step; devices have names like `/job:ps/task:0`."""

    nodes: Mapping[tuple[str, str], OperationNode]
    messages: Sequence[Message]

    def __post_init__(self) -> None:
        """Find the readers of each node."""
        self._shares: dict[tuple[str, str, int, bool], Shares] = {}
        readers: dict[tuple[str, str], list[OperationNode]] = collections.defaultdict(list)
        for node in self.nodes.values():
            for name in {name for name, _ in node.data_inputs}:
                readers[node.device, name].append(node)
        self._readers = readers

    @functools.cached_property
    def holders(self) -> frozenset[str]:
        """The names of all variables and slots that took part."""
        return frozenset(node.name for node in self.nodes.values() if node.kind in _HOLDERS)

    def belongs_to(self, node: OperationNode) -> Shares:
        """Return the variables that an operation works for.

        They are the variable that it takes directly, or else those before it, or else those after it.
        """
        touched = self.touched(node)
        if touched:
            return {touched[0]: 1.0}
        slots = node.outputs or {0: 1}
        return self.before(node.device, node.name, 0) or _mixed(
            (self.behind(node.device, node.name, slot), size) for slot, size in slots.items()
        )

    def producer(self, message: Message) -> OperationNode | None:
        """Return the node that made the content of a message."""
        return self.nodes.get((message.sender, message.tensor))

    def readers(self, message: Message) -> Sequence[OperationNode]:
        """Return the receiver's operations that take a message; a message for the caller alone has none."""
        return self._readers.get((message.receiver, message.name), ())

    def pulled(self, message: Message) -> Shares:
        """Return the variables of its sender that a message brings."""
        return self.before(message.sender, message.tensor, 0)

    def pushed(self, message: Message) -> Shares:
        """Return the variables of its receiver that a message goes to."""
        return self.behind(message.receiver, message.name, 0)

    def touched(self, node: OperationNode) -> tuple[str, ...]:
        """Return the variables that an operation takes directly, to read or update them."""
        found = (self.nodes.get((node.device, name)) for name, _ in node.inputs)
        return tuple(dict.fromkeys(each.name for each in found if each is not None and each.kind in _HOLDERS))

    def before(self, device: str, name: str, slot: int) -> Shares:
        """Return the variables that a value on a device comes from."""
        return self._known(device, name, slot, forward=False)

    def behind(self, device: str, name: str, slot: int) -> Shares:
        """Return the variables that a value on a device goes to."""
        return self._known(device, name, slot, forward=True)

    def _known(self, device: str, name: str, slot: int, *, forward: bool) -> Shares:
        key = device, name, slot, forward
        if key not in self._shares:
            self._shares[key] = {}  # ends the recursion in a loop
            self._shares[key] = self._behind(*key[:3]) if forward else self._before(*key[:2])
        return self._shares[key]

    def _before(self, device: str, name: str) -> Shares:
        node = self.nodes.get((device, name))
        if node is None:
            return {}
        if node.kind in _HOLDERS:
            return {name: 1.0}
        if node.kind in _NO_DATA:
            return {}
        touched = self.touched(node)
        if touched:
            return {touched[0]: 1.0}
        return _mixed((self.before(device, *each), self._size(device, *each)) for each in node.data_inputs)

    def _behind(self, device: str, name: str, slot: int) -> Shares:
        ends: dict[str, float] = {}
        passed: list[Shares] = []
        for node in self._readers.get((device, name), ()):
            if (name, slot) not in node.data_inputs or node.kind in _NO_DATA:
                continue
            touched = self.touched(node)
            if touched:
                ends[touched[0]] = 1.0
            else:
                slots = node.outputs or {0: 1}
                passed.append(
                    _mixed((self.behind(device, node.name, each), size) for each, size in slots.items())
                )
        if ends:
            return {variable: 1 / len(ends) for variable in ends}
        return _mixed((shares, 1) for shares in passed)

    def _size(self, device: str, name: str, slot: int) -> int:
        node = self.nodes.get((device, name))
        return 0 if node is None else node.outputs.get(slot, 0)


def read(step_stats: Any) -> Dataflow:
    """Read a step's statistics (a `StepStats` message); messages without a valid label are left out."""
    nodes: dict[tuple[str, str], OperationNode] = {}
    logged = []
    for stats in step_stats.dev_stats:
        device = task(stats.device)
        for each in stats.node_stats if _DEVICE.search(stats.device) else ():
            if each.node_name == "RecvTensor":
                logged.append(_message(each))
            else:
                node = _node(device, each)
                nodes[device, node.name] = node
    return Dataflow(nodes, _messages(nodes, [each for each in logged if each is not None]))


def task(device: str) -> str:
    """Return the task in a device's full name: `/job:ps/task:0`."""
    parts = dict(part.split(":", 1) for part in device.strip("/").split("/") if ":" in part)
    return f"/job:{parts.get('job', 'localhost')}/task:{parts.get('task', '0')}"


def _node(device: str, stats: Any) -> OperationNode:
    found = _LABEL.match(stats.timeline_label)
    inputs = found["inputs"].split(", ") if found and found["inputs"] else []
    described = {output.slot: output.tensor_description for output in stats.output}
    start, microseconds = _times(stats)
    return OperationNode(
        device=device,
        name=stats.node_name,
        kind=found["kind"] if found else "",
        inputs=tuple(_input(each) for each in inputs if not each.startswith("^")),
        outputs={slot: _bytes(each) for slot, each in described.items()},
        integer=any(each.dtype % _REFERENCE in _INTEGERS for each in described.values()),
        start=start,
        microseconds=microseconds,
    )


def _times(stats: Any) -> tuple[float, float]:
    """Return when an operation began and how long it took, in microseconds.

    TensorFlow also counts nanoseconds, but only after version 1.8.
    """
    if stats.all_start_nanos:
        start, end = stats.op_start_rel_nanos, stats.op_end_rel_nanos
        return (stats.all_start_nanos + start) / 1000, (end - start) / 1000
    start, end = stats.op_start_rel_micros, stats.op_end_rel_micros
    return float(stats.all_start_micros + start), float(end - start)


def _bytes(description: Any) -> int:
    allocation = description.allocation_description
    return int(allocation.requested_bytes or allocation.allocated_bytes)


def _input(text: str) -> tuple[str, int]:
    name, _, slot = text.partition(":")
    return name, int(slot) if slot.isdecimal() else 0


def _message(stats: Any) -> _Logged | None:
    found = _MESSAGE.search(stats.timeline_label)
    if found is None:
        return None
    return _Logged(
        edge=int(found["edge"]),
        tensor=found["tensor"],
        sender=task(found["sender"]),
        receiver=task(found["receiver"]),
        bytes=sum(_bytes(output.tensor_description) for output in stats.output),
        start=stats.all_start_micros,
        end=stats.all_start_micros + stats.op_end_rel_micros,
    )


def _messages(nodes: Mapping[tuple[str, str], OperationNode], logged: Sequence[_Logged]) -> list[Message]:
    """Return all messages: those that receivers take, with their log entries, and the log's other messages.

    If a node sent several outputs to one process, edges and names are numbered in the same order
    (``graph_partition.cc``).
    """
    taken: dict[tuple[str, str], dict[str, list[OperationNode]]] = {}
    for node in nodes.values():
        for name, _ in node.inputs:
            tensor, marker, number = name.rpartition("_S")
            if marker and number.isdecimal() and (node.device, name) not in nodes:
                taken.setdefault((node.device, tensor), {}).setdefault(name, []).append(node)
    logs: dict[tuple[str, str], list[_Logged]] = {key: [] for key in taken}
    for log in logged:
        logs.setdefault((log.receiver, log.tensor), []).append(log)
    makers = {name: node for (_, name), node in nodes.items()}
    messages = []
    for (receiver, tensor), found in logs.items():
        names = sorted(taken.get((receiver, tensor), {}), key=lambda name: int(name.rpartition("_S")[2]))
        if len(names) in (0, len(found)):
            ordered = sorted(found, key=lambda log: log.edge)
            for log, name in zip(ordered, names or [""] * len(found), strict=True):
                messages.append(Message(tensor, name, log.sender, receiver, log.bytes, log.start, log.end))
        elif tensor in makers:
            maker = makers[tensor]
            messages += [
                Message(tensor, name, maker.device, receiver, _made(maker, taken[receiver, tensor][name]))
                for name in names
            ]
    return messages


def _made(maker: OperationNode, readers: Sequence[OperationNode]) -> int | None:
    """Return the bytes of a message without a log.

    They are those of its maker's only output, or of a reader that passes the tensor on unchanged.
    """
    if len(maker.outputs) == 1:
        return next(iter(maker.outputs.values()))
    whole = [sum(node.outputs.values()) for node in readers if node.kind in _AS_IT_IS]
    return whole[0] if whole else None


def _mixed(parts: Iterable[tuple[Shares, float]]) -> Shares:
    """Return the weighted mean of several shares; unknown shares do not count."""
    mixed: dict[str, float] = {}
    for shares, weight in parts:
        for variable, share in shares.items():
            mixed[variable] = mixed.get(variable, 0.0) + share * weight
    total = sum(mixed.values())
    return {variable: share / total for variable, share in mixed.items()} if total > 0 else {}
