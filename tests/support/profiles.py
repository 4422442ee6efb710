"""Profiles of processes, as TensorFlow's profiler would write them, put together here."""

from __future__ import annotations

from typing import Any

from paceline.sources.profiles import space_class

WORKER, SERVER = "/job:worker/task:0", "/job:ps/task:0"
RUN = 7
BEGAN = 1_000_000_000  # nanoseconds


class Profile:
    """An `XSpace` of one process; times are microseconds since it began, by a clock that is `ahead`.

    One that is not `dated` is as TensorFlow 2.4 to 2.11 wrote it.
    """

    def __init__(self, *, dated: bool = True, ahead: float = 0) -> None:
        self.space = space_class()()
        self._is_dated, self._ahead = dated, ahead
        if dated:
            task = self.space.planes.add(name="Task Environment")
            self._add_stats(task, task, {"profile_start_time": BEGAN})
        self.plane = self.space.planes.add(name="/host:CPU")
        self.line = self.plane.lines.add()

    def event(
        self, event_name: str, start: float, microseconds: float = 1, display: str = "", **stats: int | str
    ) -> None:
        key = len(self.plane.event_metadata) + 1
        self.plane.event_metadata[key].name = event_name
        self.plane.event_metadata[key].display_name = display
        event = self.line.events.add(
            metadata_id=key,
            offset_ps=int((start + self._ahead) * 1e6),
            duration_ps=int(microseconds * 1e6),
        )
        self._add_stats(self.plane, event, stats)

    def run(self, start: float, microseconds: float, run: int = RUN) -> None:
        self.event("ExecutorState::Process", start, microseconds, id=run)

    def operation(self, name: str, kind: str, start: float, microseconds: float = 1, shape: str = "") -> None:
        self.event(f"{name}:{kind}", start, microseconds, kind, **({"shape": shape} if shape else {}))

    def send(self, node: str, taker: str, receiver: str, start: float, maker: str | None = None) -> None:
        sender = "/job:x/replica:0/task:0/device:CPU:0"
        key = f"{sender};1;{receiver.replace('/task', '/replica:0/task')}/device:CPU:0;edge_1_{maker};0:0"
        stats = {"from": maker or node.rpartition("/_")[0], "to": taker}
        if self._is_dated:
            stats["key"] = key
        self.event(f"{node}:_Send", start, 1, "_Send", **stats)

    def arrival(self, node: str, at: float, run: int = RUN) -> None:
        if not self._is_dated:
            self.operation(node, "_Recv", at)
            return
        self.event("ExecutorState::ProcessAsync::Done", at, name=node, kernel_type="_Recv", step_id=run)

    @staticmethod
    def _add_stats(plane: Any, owner: Any, stats: dict[str, Any]) -> None:
        for name, value in stats.items():
            key = len(plane.stat_metadata) + 1
            plane.stat_metadata[key].name = name
            if isinstance(value, str):
                plane.stat_metadata[key + 1].name = value  # TensorFlow writes texts by reference
                owner.stats.add(metadata_id=key, ref_value=key + 1)
            else:
                owner.stats.add(metadata_id=key, int64_value=value)


def two_steps(*, of_batches: bool = True, dated: bool = True, ahead: float = 0) -> tuple[Profile, Profile]:
    """A worker and a server, whose clock is ahead, that take two steps and begin a third; one takes 1,000
    microseconds.
    """
    worker, server = Profile(dated=dated), Profile(dated=dated, ahead=ahead)
    for number in range(3):
        at, run = 1000 * number, RUN + (0 if of_batches else number)
        worker.run(at, 900, run)
        server.run(at, 990, run)
        if of_batches:
            worker.operation("input", "IteratorGetNext", at, 5)
        worker.operation("ids", "DynamicPartition", at + 10)
        worker.send("model/site/embedding_lookup/_1", "model/site/embedding_lookup", SERVER, at + 20, "ids")
        if not dated:
            server.arrival("model/site/embedding_lookup/_2", at + 90, run)
        server.operation("model/site/embedding_lookup", "ResourceGather", at + 100, 50, "(;int32[90])")
        server.send("model/site/embedding_lookup/_3", "concat", WORKER, at + 160)
        worker.arrival("model/site/embedding_lookup/_4", at + 200, run)
        worker.operation("concat", "ConcatV2", at + 210, 5, "(float[90,8];float[32,4];int32[])")
        gradient = "gradient_tape/model/site/embedding_lookup/Reshape"
        worker.operation(gradient, "Reshape", at + 400)
        worker.send(f"{gradient}/_5", "Adam/Adam/update/Unsorted", SERVER, at + 410)
        worker.send("while/LoopCond/_1/_7", "while/Switch", SERVER, at + 420)
        server.arrival(f"{gradient}/_6", at + 450, run)
        server.operation("Adam/Adam/update/ResourceScatterAdd", "ResourceScatterAdd", at + 460, 20)
    return worker, server
