"""Steps from profiles that are put together here; `test_strategy_traces` has those of a real strategy."""

import pytest

from paceline.model.traces import Direction
from paceline.tracing import profiles

pytestmark = pytest.mark.slow  # it loads TensorFlow, for its messages

WORKER, SERVER = "/job:worker/task:0", "/job:ps/task:0"
RUN = 7
BEGAN = 1_000_000_000  # nanoseconds


class Profile:
    """An `XSpace` of one process; times are microseconds since it began."""

    def __init__(self):
        from tensorflow.tsl.profiler.protobuf import xplane_pb2

        self.space = xplane_pb2.XSpace()
        task = self.space.planes.add(name="Task Environment")
        self._add_stats(task, task, {"profile_start_time": BEGAN})
        self.plane = self.space.planes.add(name="/host:CPU")
        self.line = self.plane.lines.add()

    def event(self, event_name, start, microseconds=1, display="", **stats):
        key = len(self.plane.event_metadata) + 1
        self.plane.event_metadata[key].name = event_name
        self.plane.event_metadata[key].display_name = display
        event = self.line.events.add(
            metadata_id=key, offset_ps=int(start * 1e6), duration_ps=int(microseconds * 1e6)
        )
        self._add_stats(self.plane, event, stats)

    def run(self, start, microseconds, run=RUN):
        self.event("ExecutorState::Process", start, microseconds, id=run)

    def operation(self, name, kind, start, microseconds=1):
        self.event(f"{name}:{kind}", start, microseconds, kind)

    def send(self, node, taker, receiver, start, maker=None):
        sender = "/job:x/replica:0/task:0/device:CPU:0"
        key = f"{sender};1;{receiver.replace('/task', '/replica:0/task')}/device:CPU:0;edge_1_{maker};0:0"
        stats = {"from": maker or node.rpartition("/_")[0], "to": taker, "key": key}
        self.event(f"{node}:_Send", start, 1, "_Send", **stats)

    def arrival(self, node, at, run=RUN):
        self.event("ExecutorState::ProcessAsync::Done", at, name=node, kernel_type="_Recv", step_id=run)

    @staticmethod
    def _add_stats(plane, owner, stats):
        for name, value in stats.items():
            key = len(plane.stat_metadata) + 1
            plane.stat_metadata[key].name = name
            if isinstance(value, str):
                plane.stat_metadata[key + 1].name = value  # TensorFlow writes texts by reference
                owner.stats.add(metadata_id=key, ref_value=key + 1)
            else:
                owner.stats.add(metadata_id=key, int64_value=value)


def steps_of(worker, server, count=9):
    return profiles.read({WORKER: worker.space, SERVER: server.space}, count).get(WORKER, [])


def two_steps(*, of_batches=True):
    """A worker and a server that take two steps and begin a third; one takes 1,000 microseconds."""
    worker, server = Profile(), Profile()
    for number in range(3):
        at, run = 1000 * number, RUN + (0 if of_batches else number)
        worker.run(at, 900, run)
        server.run(at, 990, run)
        if of_batches:
            worker.operation("input", "IteratorGetNext", at, 5)
        worker.operation("ids", "DynamicPartition", at + 10)
        worker.send("model/site/embedding_lookup/_1", "model/site/embedding_lookup", SERVER, at + 20, "ids")
        server.operation("model/site/embedding_lookup", "ResourceGather", at + 100, 50)
        server.send("model/site/embedding_lookup/_3", "concat", WORKER, at + 160)
        worker.arrival("model/site/embedding_lookup/_4", at + 200, run)
        worker.operation("concat", "ConcatV2", at + 210, 5)
        gradient = "gradient_tape/model/site/embedding_lookup/Reshape"
        worker.operation(gradient, "Reshape", at + 400)
        worker.send(f"{gradient}/_5", "Adam/Adam/update/Unsorted", SERVER, at + 410)
        worker.send("while/LoopCond/_1/_7", "while/Switch", SERVER, at + 420)
        server.arrival(f"{gradient}/_6", at + 450, run)
        server.operation("Adam/Adam/update/ResourceScatterAdd", "ResourceScatterAdd", at + 460, 20)
    return worker, server


@pytest.mark.parametrize("of_batches", [True, False])
def test_whole_steps_with_their_operations_and_messages(of_batches):
    first, second = steps_of(*two_steps(of_batches=of_batches))
    for number, step in enumerate((first, second)):
        at = BEGAN / 1e3 + 1000 * number
        gather = step.nodes[SERVER, "model/site/embedding_lookup"]
        assert (gather.kind, gather.start, gather.microseconds) == ("ResourceGather", at + 100, 50)
        assert step.belongs_to(gather) == {"model/site": 1.0}
        update = step.nodes[SERVER, "Adam/Adam/update/ResourceScatterAdd"]
        assert step.belongs_to(update) == {"model/site": 1.0}
        assert step.belongs_to(step.nodes[WORKER, "concat"]) == {}
        assert len(step.messages) == 3
        assert all(message.bytes is None for message in step.messages)
        (pull,) = (each for each in step.messages if each.sender == SERVER)
        assert (pull.start, pull.end) == (at + 160, at + 200)
        assert step.pulled(pull) == {"model/site": 1.0}
        assert [node.name for node in step.readers(pull)] == ["concat"]


def test_what_is_read_of_them():
    from paceline.tracing import step_stats

    steps = steps_of(*two_steps())
    record = step_stats.record(dict(enumerate(steps, 1)), WORKER)
    assert [
        (each.server, each.direction, each.variable, each.shard, each.microseconds)
        for each in record.transfers
        if each.step == 1
    ] == [
        ("ps-0", Direction.IDS, "model/site", None, None),
        ("ps-0", Direction.PULL, "model/site", None, 40.0),
        ("ps-0", Direction.PUSH, "model/site", None, 40.0),
    ]
    split = record.splits[0]
    assert split.input_wait_microseconds == 5
    assert split.pull_microseconds == 194  # until 200, but for the input and an operation
    assert split.compute_microseconds == 7
    assert split.push_microseconds == 70  # from 410 to 480


def test_steps_come_from_the_middle():
    worker, server = two_steps()
    assert len(steps_of(worker, server, 1)) == 1
    assert len(steps_of(worker, server, 2)) == 2


def test_parts_of_a_table_are_numbered():
    worker, server = Profile(), Profile()
    for number in range(2):
        at = 1000 * number
        worker.run(at, 900)
        server.run(at, 900)
        worker.operation("input", "IteratorGetNext", at)
        for part in ("Gather", "Gather_1"):
            name = f"while/body/_1/while/model/site/embedding_lookup_1/{part}"
            server.operation(name, "ResourceGather", at + 100)
            server.send(f"{name}/_3", "stitch", WORKER, at + 110)
        worker.send("ids/_1", "stitch", SERVER, at + 120)
    (step,) = steps_of(worker, server)
    assert set(step.owners.values()) == {"model/site/part_0", "model/site/part_1"}


def test_a_profile_without_steps_says_nothing():
    from tensorflow.tsl.profiler.protobuf import xplane_pb2

    empty = xplane_pb2.XSpace()
    assert profiles.read({WORKER: empty, SERVER: empty}, 2) == {}
    assert profiles.read({}, 2) == {}
    idle = Profile()
    idle.operation("model/x", "Mul", 10)
    assert profiles.read({WORKER: idle.space, SERVER: empty}, 2) == {}
