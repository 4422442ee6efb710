"""Steps from profiles that are put together here; `test_user_scripts` has those of a real strategy."""

import pytest
from support.profiles import BEGAN, SERVER, WORKER, Profile, two_steps

from paceline.model.traces.traced_steps import Direction
from paceline.model.variables.variables import Variable
from paceline.tracing import profiles


def steps_of(worker, server, count=9):
    return profiles.read({WORKER: worker.space, SERVER: server.space}, count).get(WORKER, [])


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
        (pull,) = (each for each in step.messages if each.sender == SERVER)
        # As many rows as there were ids, so it is not the other one that is joined there.
        assert pull.bytes == 90 * 8 * 4
        sizes = {message.tensor: message.bytes for message in step.messages if message is not pull}
        assert sizes == {"ids": 90 * 4, "gradient_tape/model/site/embedding_lookup/Reshape": None}
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


def test_a_variable_that_is_sent_whole_has_the_shape_of_its_update():
    worker, server = Profile(), Profile()
    update = "Adagrad/Adagrad/update_1/ResourceApplyAdagradV2"
    for number in range(2):
        at = 1000 * number
        worker.run(at, 900)
        server.run(at, 990)
        worker.operation("input", "IteratorGetNext", at, 5)
        server.operation("dense/MatMul/ReadVariableOp", "ReadVariableOp", at + 100)
        server.send("dense/MatMul/ReadVariableOp/_3", "dense/MatMul", WORKER, at + 160)
        worker.operation("dense/MatMul", "MatMul", at + 210, 5, "(float[32,8];float[8,4])")
        worker.operation("gradient_tape/dense/MatMul/MatMul", "MatMul", at + 300)
        worker.send("gradient_tape/dense/MatMul/MatMul/_5", update, SERVER, at + 410)
        server.operation(update, "ResourceApplyAdagradV2", at + 460, 20, "(;;float[];float[];float[8,4])")
    (step,) = steps_of(worker, server)
    assert {message.tensor: message.bytes for message in step.messages} == {
        "dense/MatMul/ReadVariableOp": 8 * 4 * 4, "gradient_tape/dense/MatMul/MatMul": 8 * 4 * 4,
    }  # fmt: skip


def test_a_tensor_that_is_sent_once_more_at_the_end_of_a_loop_is_none():
    worker, server = two_steps(of_batches=False)
    node = "model/site/embedding_lookup"
    server.send(f"{node}/_3", "concat", WORKER, 900)  # Nothing was looked up for it.
    steps = steps_of(worker, server)
    assert [sum(each.sender == SERVER for each in step.messages) for step in steps] == [1, 1]


@pytest.mark.parametrize("ahead", [0, 30, 5_000, -250_000])
def test_an_old_profile_says_neither_when_it_began_nor_who_takes_what_is_sent(ahead):
    steps = steps_of(*two_steps(of_batches=False, dated=False, ahead=ahead))
    assert len(steps) == 2
    for number, step in enumerate(steps):
        at = 1000.0 * number
        assert step.nodes[WORKER, "concat"].start == at + 210
        # What was sent says it to some microseconds: here 80 one way and 50 the other.
        assert step.nodes[SERVER, "model/site/embedding_lookup"].start == pytest.approx(at + 100, abs=50)
        found = {message.tensor: (message.receiver, message.bytes, message.end) for message in step.messages}
        assert found == {
            "ids": (SERVER, 90 * 4, None),
            "model/site/embedding_lookup": (WORKER, 90 * 8 * 4, None),
            "gradient_tape/model/site/embedding_lookup/Reshape": (SERVER, None, None),
        }


def test_it_was_taken_when_it_was_asked_for():
    worker, server = two_steps(dated=False)
    (first, _) = profiles.read({WORKER: worker.space, SERVER: server.space}, 9, at=1e9)[WORKER]
    assert first.nodes[WORKER, "concat"].start == 1e15 + 210


def variable(name, shape, device=SERVER, *, sparse=False):
    return Variable(name=name, shape=shape, sparse=sparse, devices=(device,))


TABLE, WEIGHTS = variable("table", (500, 8), sparse=True), variable("weights", (8, 1))


def without_layers():
    """A loop of one's own: what it computes is called after operations alone."""
    worker, server = Profile(), Profile()
    update, dense = "Adagrad/Adagrad/update/ResourceSparse", "Adagrad/Adagrad/update_1/ResourceApplyAdagradV2"
    for number in range(2):
        at = 1000 * number
        worker.run(at, 900)
        server.run(at, 990)
        worker.operation("input", "IteratorGetNext", at, 5)
        server.operation("embedding_lookup", "ResourceGather", at + 100, 1, "(;int64[32])")
        server.send("embedding_lookup/_3", "embedding_lookup/Identity_1", WORKER, at + 110)
        worker.operation("embedding_lookup/Identity_1", "Identity", at + 150, 1, "(float[32,8])")
        server.operation("MatMul/ReadVariableOp", "ReadVariableOp", at + 100)
        server.send("MatMul/ReadVariableOp/_5", "MatMul", WORKER, at + 120)
        worker.operation("MatMul", "MatMul", at + 210, 5, "(float[32,8];float[8,1])")
        worker.send("gradient_tape/MatMul/MatMul/_7", update, SERVER, at + 300)
        server.operation(
            update, "ResourceSparseApplyAdagradV2", at + 400, 9, "(;;float[];float[];float[32,8];int64[32])"
        )
        worker.send("gradient_tape/MatMul/MatMul_1/_9", dense, SERVER, at + 410)
        server.operation(dense, "ResourceApplyAdagradV2", at + 460, 20, "(;;float[];float[];float[8,1])")
        server.send(f"{dense}/_11", "Adagrad/Adagrad/group_deps", WORKER, at + 490)
        server.send("Adagrad/AssignSubVariableOp_1/_15", "Identity_4", WORKER, at + 492)
        worker.send("div_no_nan/_13", "Const", SERVER, at + 495)
    return worker, server


def owners(*variables):
    worker, server = without_layers()
    (step,) = profiles.read({WORKER: worker.space, SERVER: server.space}, 1, variables=variables)[WORKER]
    return {
        message.tensor: next(iter({**step.pulled(message), **step.pushed(message)}), None)
        for message in step.messages
    }


def test_a_variable_is_known_by_its_server_and_shape():
    assert owners(TABLE, WEIGHTS) == {
        "embedding_lookup": "table",
        "MatMul/ReadVariableOp": "weights",
        "gradient_tape/MatMul/MatMul": "table",
        "gradient_tape/MatMul/MatMul_1": "weights",
    }


def test_where_several_may_be_meant_names_of_operations_stay():
    twin = variable("twin", (300, 8), sparse=True)
    elsewhere = variable("elsewhere", (300, 8), "/job:ps/task:1", sparse=True)
    assert owners(TABLE, WEIGHTS, twin)["embedding_lookup"] == "embedding_lookup"
    assert owners(TABLE, WEIGHTS, elsewhere)["embedding_lookup"] == "table"
    assert owners()["MatMul/ReadVariableOp"] == "MatMul"
