import pytest

pytestmark = pytest.mark.slow


def test_a_fragment_computes_the_same_from_other_tensors():
    import tensorflow.compat.v1 as tf1

    from paceline.training.graph import fragments

    with tf1.Graph().as_default() as first:
        one, other = tf1.placeholder(tf1.float32, (), "one"), tf1.placeholder(tf1.float32, (), "other")
        total = tf1.add(one, other, name="total")
        with tf1.device("/job:elsewhere"), tf1.control_dependencies([tf1.no_op("before")]):
            result = tf1.add(total * total, one, name="result")
    fragment = fragments.cut(first, [result, result], {total.name, one.name, other.name})
    assert sorted(fragment.takes) == ["one:0", "total:0"]
    assert fragment.gives == ("result:0",)
    with tf1.Graph().as_default() as second, tf1.Session() as session:
        found = fragment.put({"total:0": tf1.constant(3.0), "one:0": tf1.constant(4.0)}, "again")
        assert session.run(found) == {"result:0": 13.0}
        assert {each.device for each in second.get_operations()} == {""}
        assert "again/before" not in {each.name for each in second.get_operations()}
