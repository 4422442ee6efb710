"""The dataflow of a step, from labels that may be anything."""

from types import SimpleNamespace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from paceline.tracing import dataflows

PS, WORKER = "/job:ps/task:0", "/job:worker/task:0"


def stats(name, label, outputs=(), start=0):
    described = [
        SimpleNamespace(
            slot=slot,
            tensor_description=SimpleNamespace(
                dtype=1, allocation_description=SimpleNamespace(requested_bytes=size, allocated_bytes=size)
            ),
        )
        for slot, size in enumerate(outputs)
    ]
    return SimpleNamespace(
        node_name=name, timeline_label=label, output=described, all_start_micros=start,
        all_start_nanos=start * 1000, op_start_rel_nanos=0, op_end_rel_nanos=1000, op_start_rel_micros=0,
        op_end_rel_micros=1,
    )  # fmt: skip


def flow(**devices):
    return dataflows.read(
        SimpleNamespace(
            dev_stats=[
                SimpleNamespace(device=f"/job:{job}/replica:0/task:0/device:CPU:0", node_stats=nodes)
                for job, nodes in devices.items()
            ]
        )
    )


def message(tensor, size, edge=1):
    full = "/job:{}/replica:0/task:0/device:CPU:0"
    label = (
        f"[0.2MB] [10.000000Mb/s] edge_{edge}_{tensor} from {full.format('worker')} to {full.format('ps')}"
    )
    return stats("RecvTensor", label, (size,))


def test_a_large_message_has_its_exact_bytes():
    (found,) = flow(ps=[message("gradients/sum", 200_001)]).messages
    assert (found.tensor, found.bytes, found.sender, found.receiver) == ("gradients/sum", 200_001, WORKER, PS)


def test_times_are_there_without_nanoseconds():
    node = stats("add", "add = Add(a, b)", start=1_700_000_000_000_000)
    node.op_start_rel_micros, node.op_start_rel_nanos, node.op_end_rel_micros = 5, 5000, 25
    node.op_end_rel_nanos = 25_000
    (new,) = flow(worker=[node]).nodes.values()
    node.all_start_nanos = node.op_start_rel_nanos = node.op_end_rel_nanos = 0  # As up to 1.8.
    (old,) = flow(worker=[node]).nodes.values()
    assert (old.start, old.microseconds) == (new.start, new.microseconds) == (1_700_000_000_000_005, 20)


def test_outputs_of_one_node_go_their_own_ways():
    """Two parts of one split arrive under names that are numbered as their edges are."""
    nodes = [
        stats("a", "a = VarHandleOp()", (8,)),
        stats("b", "b = VarHandleOp()", (8,)),
        stats("update_a", "update_a = ResourceApplyAdagrad(a, parts_S7)"),
        stats("update_b", "update_b = ResourceApplyAdagrad(b, parts_S11)"),
    ]
    first, second = message("parts", 100, edge=20), message("parts", 300, edge=31)
    found = flow(ps=[*nodes, second, first])
    goes = {each.bytes: found.pushed(each) for each in found.messages}
    assert goes == {100: {"a": 1.0}, 300: {"b": 1.0}}


def test_sizes_and_shapes_carry_no_values():
    nodes = [
        stats("a", "a = VarHandleOp()", (8,)),
        stats("b", "b = VarHandleOp()", (8,)),
        stats("count", "count = Size(ids_S1)", (4,)),
        stats("rows", "rows = ResourceGather(a, ids_S1)", (24,)),
        stats("all", "all = ReadVariableOp(b)", (8,)),
        stats("shaped", "[0.1MB 0.1MB] shaped = Reshape(all, count)", (8,)),
        stats("joined", "joined = ConcatV2(rows, shaped, axis)", (32,)),
    ]
    found = flow(ps=[*nodes, message("ids", 12)])
    assert found.pushed(found.messages[0]) == {"a": 1.0}
    assert found.before(PS, "joined", 0) == pytest.approx({"a": 0.75, "b": 0.25})


NAMES = st.sampled_from(["a", "b", "c", "a:1", "b_S2", "^c", ""]) | st.text(max_size=8)
KINDS = st.sampled_from(["VarHandleOp", "ConcatV2", "SplitV", "Split", "Identity", "ResourceGather", "Size"])
LABELS = (
    st.text(max_size=60)
    | st.builds(lambda n, k, i: f"{n} = {k}({', '.join(i)})", NAMES, KINDS, st.lists(NAMES, max_size=4))
    | st.builds(lambda n: f"[4B] [1Mb/s] edge_3_{n} from /job:worker/task:0/ to /job:ps/task:0", NAMES)
)
NODES = st.lists(
    st.builds(
        stats, st.just("RecvTensor") | NAMES, LABELS, st.lists(st.integers(0, 9), max_size=3).map(tuple)
    ),
    max_size=12,
)


@example(ps=[], worker=[stats("a", "b = c(d:²)", ())])  # a digit that is no number
@given(NODES, NODES)
def test_any_labels_can_be_read_and_shares_add_up(ps, worker):
    found = flow(ps=ps, worker=worker)
    shares = [found.pulled(each) for each in found.messages] + [found.pushed(each) for each in found.messages]
    shares += [found.belongs_to(node) for node in found.nodes.values()]
    assert all(sum(each.values()) == pytest.approx(1) for each in shares if each)


@pytest.mark.parametrize("device", ["", "/", "job", "/device:CPU:0", "/job:ps"])
def test_a_device_without_a_task_is_local(device):
    assert dataflows.task(device) in ("/job:localhost/task:0", PS)
